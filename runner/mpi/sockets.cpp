#include "runner/mpi/sockets.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/socket_address.hpp"

namespace mlenv::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

SocketAddress address_of(const Host& host) {
  if (const auto made = SocketAddress::of(host.address, host.port)) return *made;
  throw failure("no-node", "`{}` is no address, of node `{}`", host.address, host.name);
}

Fd socket_for(const SocketAddress& address) {
  Fd made = address.stream_socket();
  if (!made) throw os_error(errno, "cannot make a socket");
  return made;
}

/// A node without power closes nothing.
void notice_silence(const Fd& connection) {
  constexpr int kOn = 1;
  constexpr int kSeconds = 2;
  constexpr int kTimes = 3;
  constexpr int kUnanswered = 8000;  // milliseconds
  const int fd = connection.get();
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof kOn);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &kSeconds, sizeof kSeconds);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &kSeconds, sizeof kSeconds);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &kTimes, sizeof kTimes);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUnanswered, sizeof kUnanswered);
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &kOn, sizeof kOn);
}

/// 0, or why not.
int try_to_connect(const Fd& made, const SocketAddress& address, milliseconds patience) {
  if (::connect(made.get(), address.get(), address.size()) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd ready{made.get(), POLLOUT, 0};
  if (::poll(&ready, 1, static_cast<int>(patience.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

}  // namespace

Fd listen_at(const Host& host) {
  constexpr int kOn = 1;
  constexpr int kWaiting = 128;
  const SocketAddress address = address_of(host);
  Fd listener = socket_for(address);
  (void)::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof kOn);
  if (::bind(listener.get(), address.get(), address.size()) != 0) {
    if (errno == EADDRINUSE) {
      throw failure("port-taken", "port {} of {} was taken meanwhile", host.port, host.address)
          .hint("start the job again: it gets another port");
    }
    throw os_error(errno, "cannot have port {} of {}", host.port, host.address);
  }
  if (::listen(listener.get(), kWaiting) != 0) throw os_error(errno, "cannot listen");
  return listener;
}

Fd accept_from(const Fd& listener) {
  Fd connection{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
  if (connection) notice_silence(connection);
  return connection;
}

Fd connect_to(const Host& host, milliseconds patience) {
  constexpr int kPause = 50;  // milliseconds
  const SocketAddress address = address_of(host);
  const auto until = steady_clock::now() + patience;
  while (true) {
    Fd made = socket_for(address);
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    const int error = try_to_connect(made, address, std::max(left, milliseconds{1}));
    if (error == 0) {
      notice_silence(made);
      return made;
    }
    if (steady_clock::now() >= until) {
      throw failure("no-node", "node `{}` does not answer at {}:{}", host.name, host.address,
                    host.port)
          .because(errno_text(error));
    }
    (void)::poll(nullptr, 0, kPause);  // its container is not up yet
  }
}

}  // namespace mlenv::mpi
