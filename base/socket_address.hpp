#pragma once
// Numeric addresses for bind(2) and connect(2). No names: a static program has no resolver, and the
// programs that use this were told addresses.
#include <sys/socket.h>
#include <cstdint>
#include <optional>
#include <string>

#include "base/handle.hpp"

namespace mlenv {

/// Of IPv4 or IPv6, with its port.
class SocketAddress {
 public:
  /// nullopt: `address` is neither `192.0.2.1` nor `2001:db8::1`. A link-local one has no interface
  /// with it, and so leads nowhere.
  static std::optional<SocketAddress> of(const std::string& address, std::uint16_t port);
  /// Its own end of a socket; nullopt: it has none.
  static std::optional<SocketAddress> own_of(const Fd& socket);

  /// For bind(2) and connect(2).
  const sockaddr* get() const;
  socklen_t size() const { return size_; }
  std::uint16_t port() const;

  /// TCP of this family that closes on exec and does not wait; empty: errno says why not.
  Fd stream_socket() const;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

}  // namespace mlenv
