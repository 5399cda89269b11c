#pragma once
// What nodes say to each other, over TCP: whoever connects begins with a line, kPeerMarker and the
// job's token; then asks, `GET sha256:HEX OFFSET LENGTH`, as often as it likes, without waiting for
// answers, which come in that order: `OK` and the bytes, or `NO WHY`. Nothing is encrypted, as
// nothing is that ranks say to each other; what came is proven by the image's digests.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/handle.hpp"

namespace mlenv::job {

inline constexpr std::string_view kPeerMarker = "MLENV-PEER/1 ";
/// Of any line that either says.
inline constexpr std::size_t kMostPeerLine = 1024;

struct PieceRequest {
  std::string digest;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};
std::string render_request_line(const PieceRequest& request);
/// nullopt: it is none.
std::optional<PieceRequest> parse_request_line(std::string_view line);

/// A socket that listens at the address, IPv4 or IPv6, at a port that is free; none: it cannot.
Fd listen_at(const std::string& address, std::uint16_t& port);
/// One that connects; whether it has is not waited for. None: it cannot.
Fd connect_to(const std::string& address, std::uint16_t port);

}  // namespace mlenv::job
