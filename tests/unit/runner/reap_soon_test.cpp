#include "runner/local/reap_soon.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

namespace mlenv {
namespace {

using std::chrono::milliseconds;

bool is_gone(pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) < 0 && errno == ECHILD; }

TEST(ReapSoon, AChildThatEndsIsWaitedFor) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  reap_soon(pid, milliseconds(60'000));
  EXPECT_TRUE(is_gone(pid));
}

TEST(ReapSoon, OneThatDoesNotIsKilled) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    (void)std::signal(SIGTERM, SIG_IGN);
    while (true) ::pause();
  }
  int asked = 0;
  reap_soon(pid, milliseconds(10), [&] { return ++asked < 3; });
  EXPECT_EQ(asked, 3);
  EXPECT_TRUE(is_gone(pid));
}

}  // namespace
}  // namespace mlenv
