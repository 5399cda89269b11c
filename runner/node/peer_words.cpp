#include "runner/node/peer_words.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace mlenv::job {
namespace {

constexpr std::string_view kGet = "GET ";

struct Place {
  sockaddr_storage bytes{};
  socklen_t size = 0;
  const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&bytes);  // NOLINT(*-reinterpret-cast): sockets'
  }
};

/// Numbers alone: a static program has no resolver, and a link-local address means nothing here.
std::optional<Place> place_at(const std::string& address, std::uint16_t port) {
  Place place;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    place.size = sizeof four;
    std::memcpy(&place.bytes, &four, sizeof four);
  } else if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) == 1) {
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    place.size = sizeof six;
    std::memcpy(&place.bytes, &six, sizeof six);
  } else {
    return std::nullopt;
  }
  return place;
}

Fd stream_socket(const Place& place) {
  return Fd{::socket(place.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

/// The number at the front of `text`, and a character behind it, taken off; 0: none is wanted.
std::optional<std::uint64_t> take_number(std::string_view& text, char end) {
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  if (end == '\0') return text.empty() ? std::optional(number) : std::nullopt;
  if (text.empty() || text.front() != end) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

}  // namespace

std::string render_request_line(const PieceRequest& request) {
  return fmt::format("{}{} {} {}\n", kGet, request.digest, request.offset, request.length);
}

std::optional<PieceRequest> parse_request_line(std::string_view line) {
  if (!line.starts_with(kGet)) return std::nullopt;
  line.remove_prefix(kGet.size());
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  PieceRequest request{std::string(line.substr(0, space))};
  line.remove_prefix(space + 1);
  const auto offset = take_number(line, ' ');
  const auto length = offset ? take_number(line, '\0') : std::nullopt;
  if (!length) return std::nullopt;
  request.offset = *offset;
  request.length = *length;
  return request;
}

bool same_token(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned differing = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    differing |= static_cast<unsigned char>(one[i]) ^ static_cast<unsigned char>(other[i]);
  }
  return differing == 0;
}

Fd listen_at(const std::string& address, std::uint16_t& port) {
  constexpr int kBacklog = 64;
  const std::optional<Place> place = place_at(address, 0);
  if (!place) return {};
  Fd fd = stream_socket(*place);
  if (!fd || ::bind(fd.get(), place->get(), place->size) != 0) return {};
  if (::listen(fd.get(), kBacklog) != 0) return {};
  Place found;
  found.size = sizeof found.bytes;
  auto* const raw = reinterpret_cast<sockaddr*>(&found.bytes);  // NOLINT(*-reinterpret-cast)
  if (::getsockname(fd.get(), raw, &found.size) != 0) return {};
  // Ports lie at the same place of both (netinet/in.h).
  sockaddr_in four{};
  std::memcpy(&four, &found.bytes, sizeof four);
  port = ntohs(four.sin_port);
  return fd;
}

Fd connect_to(const std::string& address, std::uint16_t port) {
  const std::optional<Place> place = place_at(address, port);
  if (!place) return {};
  Fd fd = stream_socket(*place);
  if (!fd) return {};
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), place->get(), place->size) == 0 || errno == EINPROGRESS) return fd;
  return {};
}

}  // namespace mlenv::job
