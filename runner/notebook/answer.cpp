// Whether a notebook server listens and answers, asked without waiting long.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/notebook/server.hpp"

namespace mlenv {
namespace {

constexpr std::uint16_t kFirstPort = 8888;  // as Jupyter has it
constexpr std::uint16_t kMostTried = 200;

sockaddr_in on_loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Fd stream_socket() {
  Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (!fd) throw os_error(errno, "cannot make a socket");
  return fd;
}

/// 0: it is free.
int error_of_binding(std::uint16_t port) {
  const Fd fd = stream_socket();
  const int on = 1;  // a connection that lingers from a run before is no listener
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = on_loopback(port);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&address);  // NOLINT: bind(2)'s way
  return ::bind(fd.get(), plain, sizeof address) == 0 ? 0 : errno;
}

bool is_published(std::uint16_t port, const std::vector<PublishedPort>& taken) {
  for (const PublishedPort& one : taken) {
    if (one.host == port || one.container == port) return true;
  }
  return false;
}

/// User of whoever listens on 127.0.0.1, as proc(5) has it; nullopt: nobody does.
std::optional<uid_t> listener(std::uint16_t port) {
  constexpr std::size_t kLocal = 1;
  constexpr std::size_t kState = 3;
  constexpr std::size_t kUser = 7;
  constexpr const char* kListening = "0A";
  const std::string wanted = fmt::format("{:08X}:{:04X}", htonl(INADDR_LOOPBACK), port);
  const std::string table = read_file("/proc/net/tcp");
  for (const std::string_view line : split(table, '\n')) {
    std::vector<std::string_view> fields;
    for (const std::string_view field : split(line, ' ')) {
      if (!field.empty()) fields.push_back(field);
    }
    if (fields.size() <= kUser || fields[kLocal] != wanted || fields[kState] != kListening) {
      continue;
    }
    return static_cast<uid_t>(std::stoul(std::string(fields[kUser])));
  }
  return std::nullopt;
}

/// As root whoever the job runs as may listen, and what joins its network to this one.
bool is_our_port(std::uint16_t port) {
  const std::optional<uid_t> user = listener(port);
  return user && (::geteuid() == 0 || *user == ::geteuid());
}

}  // namespace

std::uint16_t notebook_port(std::optional<std::uint16_t> port,
                            const std::vector<PublishedPort>& taken) {
  if (!port) {
    for (std::uint16_t one = kFirstPort; one < kFirstPort + kMostTried; ++one) {
      if (!is_published(one, taken) && error_of_binding(one) == 0) return one;
    }
    throw failure("port-taken", "no port from {} to {} of this machine is free", kFirstPort,
                  kFirstPort + kMostTried - 1)
        .hint("name one: `--jupyter=9999`");
  }
  const int error = is_published(*port, taken) ? EADDRINUSE : error_of_binding(*port);
  if (error == EADDRINUSE) {
    throw failure("port-taken", "the port 127.0.0.1:{} of this machine is taken", *port)
        .hint("leave the number out: `--jupyter` takes the next free one");
  }
  if (error == EACCES) {
    throw failure("no-port", "only root may listen on port {}", *port)
        .hint("choose one from 1024 on");
  }
  if (error != 0) throw os_error(error, "cannot listen on 127.0.0.1:{}", *port);
  return *port;
}

bool notebook_answers(const NotebookAddress& address) {
  if (!is_our_port(address.port)) return false;
  const Fd fd = stream_socket();
  // It is on this machine: slow is what a busy one is, and then it is asked again.
  const timeval longest{0, 500'000};
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &longest,
                     sizeof longest);  // connect(2), too
  const sockaddr_in place = on_loopback(address.port);
  const auto* const plain = reinterpret_cast<const sockaddr*>(&place);  // NOLINT: connect(2)'s way
  if (::connect(fd.get(), plain, sizeof place) != 0) return false;
  const std::string request = fmt::format(
      "GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: token {}\r\n"
      "Connection: close\r\n\r\n",
      address.port, address.token);
  if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
  constexpr std::string_view kGood = "HTTP/1.1 200";
  std::string answer(kGood.size(), '\0');
  const ssize_t count = ::recv(fd.get(), answer.data(), answer.size(), MSG_WAITALL);
  return count == static_cast<ssize_t>(kGood.size()) && answer == kGood;
}

}  // namespace mlenv
