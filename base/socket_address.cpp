#include "base/socket_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <cstring>

namespace mlenv {

std::optional<SocketAddress> SocketAddress::of(const std::string& address, std::uint16_t port) {
  SocketAddress made;
  sockaddr_in four{};
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET, address.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    made.size_ = sizeof four;
    std::memcpy(&made.storage_, &four, sizeof four);
    return made;
  }
  if (::inet_pton(AF_INET6, address.c_str(), &six.sin6_addr) != 1) return std::nullopt;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  made.size_ = sizeof six;
  std::memcpy(&made.storage_, &six, sizeof six);
  return made;
}

std::optional<SocketAddress> SocketAddress::own_of(const Fd& socket) {
  SocketAddress found;
  found.size_ = sizeof found.storage_;
  auto* const raw = reinterpret_cast<sockaddr*>(&found.storage_);  // NOLINT(*-reinterpret-cast)
  if (::getsockname(socket.get(), raw, &found.size_) != 0) return std::nullopt;
  return found;
}

const sockaddr* SocketAddress::get() const {
  return reinterpret_cast<const sockaddr*>(&storage_);  // NOLINT(*-reinterpret-cast): sockets'
}

std::uint16_t SocketAddress::port() const {
  // It lies at the same place of both (netinet/in.h).
  sockaddr_in four{};
  std::memcpy(&four, &storage_, sizeof four);
  return ntohs(four.sin_port);
}

Fd SocketAddress::stream_socket() const {
  return Fd{::socket(storage_.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

}  // namespace mlenv
