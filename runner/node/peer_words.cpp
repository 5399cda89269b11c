#include "runner/node/peer_words.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>

#include "base/socket_address.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kGet = "GET ";

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

Fd listen_at(const std::string& address, std::uint16_t& port) {
  constexpr int kBacklog = 64;
  const std::optional<SocketAddress> place = SocketAddress::of(address, 0);
  if (!place) return {};
  Fd fd = place->stream_socket();
  if (!fd || ::bind(fd.get(), place->get(), place->size()) != 0) return {};
  if (::listen(fd.get(), kBacklog) != 0) return {};
  const std::optional<SocketAddress> found = SocketAddress::own_of(fd);
  if (!found) return {};
  port = found->port();
  return fd;
}

Fd connect_to(const std::string& address, std::uint16_t port) {
  const std::optional<SocketAddress> place = SocketAddress::of(address, port);
  if (!place) return {};
  Fd fd = place->stream_socket();
  if (!fd) return {};
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd.get(), place->get(), place->size()) == 0 || errno == EINPROGRESS) return fd;
  return {};
}

}  // namespace mlenv::job
