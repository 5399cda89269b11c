#include "runner/compare/tools_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv::compare {
namespace {

sockaddr_in loopback(std::uint64_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  address.sin_port = ::htons(static_cast<std::uint16_t>(port));
  return address;
}

bool listens(std::uint64_t port) {
  const Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const sockaddr_in address = loopback(port);
  // Asked without saying a word: iperf3 takes it for a client that went away.
  return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

std::optional<Started> start_server(const Bench& bench, StopSignals& signals) {
  const std::vector<std::string> words = {"iperf3",    "-s", "-B",
                                          "127.0.0.1", "-p", fmt::format("{}", bench.port)};
  const Fd nowhere = open_file("/dev/null", O_RDWR);
  try {
    const char* const side = bench.bare_tools != nullptr ? "bare" : "builtin";
    const ActiveSide on{find_side_spec(side), {}};
    Command command = command_on(bench, on, {Which::tools, words});
    command.stdout_fd = nowhere.get();
    command.stderr_fd = nowhere.get();
    Started child(minder_of(bench, on), command);
    constexpr int kTries = 100;
    constexpr int kPause = 100;  // ms
    for (int i = 0; i < kTries && signals.came() == 0; ++i) {
      if (listens(bench.port)) return child;
      if (child.wait(std::chrono::milliseconds(kPause))) return std::nullopt;
    }
  } catch (const Error&) {
    return std::nullopt;  // the rows that need it say so
  }
  return std::nullopt;
}

std::uint64_t free_port() {
  const Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), plain, size) != 0 || ::getsockname(fd.get(), plain, &size) != 0) {
    throw os_error(errno, "cannot find a free port");
  }
  return ::ntohs(address.sin_port);
}

}  // namespace mlenv::compare
