// The remote shell between containers: a server in this process, and what asks it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "base/process.hpp"
#include "runner/mpi/shell_client.hpp"
#include "runner/mpi/shell_server.hpp"
#include "runner/mpi/sockets.hpp"
#include "runner/node/hello.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::mpi {
namespace {

/// As long as it lives somebody serves.
class Served {
 public:
  Served() : host_{"n1", "127.0.0.1", job::free_ports(1).at(0), 1}, server_(host_, "secret") {
    thread_ = std::thread([this] {
      while (!ended_) {
        std::vector<pollfd> fds;
        server_.add_to(fds);
        ::poll(fds.data(), fds.size(), 10);
        server_.hear(fds.data());
      }
    });
  }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;
  ~Served() { stop(); }
  void stop() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  const Host& host() const { return host_; }
  const ShellServer& server() const { return server_; }

 private:
  Host host_;
  ShellServer server_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// Not for a while: whoever is let in is sent a nonce at once.
bool nothing_is_said_to(const Fd& connection) {
  constexpr int kWhile = 300;  // milliseconds
  pollfd fd{connection.get(), POLLIN, 0};
  return ::poll(&fd, 1, kWhile) == 0;
}

void send_what_it_takes(const Fd& connection, std::string_view bytes) {
  constexpr int kPatience = 2000;  // milliseconds
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    pollfd fd{connection.get(), POLLOUT, 0};
    if (count == 0 || errno != EAGAIN || ::poll(&fd, 1, kPatience) <= 0) return;
  }
}

bool is_closed(const Fd& connection) {
  constexpr int kPatience = 5000;  // milliseconds
  std::array<char, 4096> buffer{};
  pollfd fd{connection.get(), POLLIN, 0};
  while (::poll(&fd, 1, kPatience) > 0) {
    const ssize_t count = ::read(connection.get(), buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EAGAIN)) return true;
  }
  return false;
}

TEST(MpiShell, WordsAsSshHasThem) {
  EXPECT_EQ(parse_shell_words({"-x", "n2", "PATH=/a ;", "orted", "-mca", "ess", "\"env\""}),
            (ShellWords{"n2", "PATH=/a ; orted -mca ess \"env\"", false}));
  EXPECT_EQ(
      parse_shell_words({"-o", "BatchMode=yes", "-p22", "-nT", "-l", "jo", "n2", "-q", "true"}),
      (ShellWords{"n2", "true", true}));
  EXPECT_EQ(parse_shell_words({"--", "n2", "ls", "-l"}), (ShellWords{"n2", "ls -l", false}));
  for (const Strings& words : {Strings{}, Strings{"n2"}, Strings{"-p", "22"}}) {
    EXPECT_EQ(code_of([&] { (void)parse_shell_words(words); }), "usage");
  }
}

TEST(MpiShell, RunsACommandAndTellsItsStatus) {
  const Served served;
  EXPECT_EQ(run_there(served.host(), {"n1", "exit 7", true}, "secret"), 7);
  EXPECT_EQ(run_there(served.host(), {"n1", "kill -9 $$", true}, "secret"), 137);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_there(served.host(), {"n1", "echo out; echo err >&2; cat", true}, "secret"), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "out\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "err\n");
}

TEST(MpiShell, RefusesWhoDoesNotKnowTheSecret) {
  const Served served;
  EXPECT_EQ(code_of([&] {
              run_there(served.host(), {"n1", "true", true}, "other");
            }),
            "mpi-refused");
}

TEST(MpiShell, HearsOfARankThatFailed) {
  Served served;
  report_to(served.host(), {4, 139}, "secret");
  report_to(served.host(), {5, 1}, "secret");
  served.stop();
  EXPECT_EQ(served.server().failure(), (RankFailure{4, 139}));
}

TEST(MpiShell, StrangersAreFewAtATimeAndKeepNobodyOutForever) {
  const Served served;
  constexpr std::size_t kStrangers = 80;
  std::vector<Fd> strangers;
  for (std::size_t i = 0; i < kStrangers; ++i) {
    strangers.push_back(connect_to(served.host(), std::chrono::milliseconds{2000}));
  }
  std::atomic<int> status{-1};
  std::thread asks([&] { status = run_there(served.host(), {"n1", "exit 7", true}, "secret"); });
  EXPECT_TRUE(nothing_is_said_to(strangers.back())) << "all of them were let in";
  strangers.clear();
  asks.join();
  EXPECT_EQ(status, 7);
}

TEST(MpiShell, AStrangerMaySayLittle) {
  const Served served;
  const Fd stranger = connect_to(served.host(), std::chrono::milliseconds{2000});
  const std::string much = render_frame(FrameKind::command, std::string(std::size_t{2} << 20, 'x'));
  send_what_it_takes(stranger, much);
  EXPECT_TRUE(is_closed(stranger));
  EXPECT_EQ(run_there(served.host(), {"n1", "true", true}, "secret"), 0);
}

TEST(MpiShell, ATakenPort) {
  const Served served;
  EXPECT_EQ(code_of([&] { const Fd second = listen_at(served.host()); }), "port-taken");
}

TEST(MpiShell, NobodyThere) {
  const Host host{"n9", "127.0.0.1", job::free_ports(1).at(0), 1};
  EXPECT_EQ(code_of([&] { (void)connect_to(host, std::chrono::milliseconds{100}); }), "no-node");
}

}  // namespace
}  // namespace mlenv::mpi
