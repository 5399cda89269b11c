#include "runner/local/signal_queue.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <unistd.h>
#include <csignal>

namespace mlenv {
namespace {

bool has_some(const SignalQueue& queue) {
  constexpr int kLongest = 10'000;
  pollfd one{queue.fd(), POLLIN, 0};
  return ::poll(&one, 1, kLongest) == 1;
}

TEST(SignalQueue, GivesSignalsInTheirOrder) {
  for (const auto impatience : {SignalQueue::Impatience::none, SignalQueue::Impatience::ends}) {
    const SignalQueue queue{impatience};
    EXPECT_EQ(queue.next(), 0);
    for (const int number : {SIGUSR2, SIGTERM, SIGTERM}) {
      ASSERT_EQ(::kill(::getpid(), number), 0);
      ASSERT_TRUE(has_some(queue));
      EXPECT_EQ(queue.next(), number);
      EXPECT_EQ(queue.next(), 0);
    }
  }
}

volatile std::sig_atomic_t seen = 0;

TEST(SignalQueue, WhatNobodyTookArrivesAfterIt) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) { seen = seen + 1; };
  ::sigaction(SIGUSR1, &action, &before);
  seen = 0;
  {
    const SignalQueue queue{SignalQueue::Impatience::ends};
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
    ASSERT_TRUE(has_some(queue));
    EXPECT_EQ(seen, 0);
  }
  EXPECT_EQ(seen, 1);
  ::sigaction(SIGUSR1, &before, nullptr);
}

/// By whatever it is that does not go on.
void be_held_up() {
  (void)std::signal(SIGINT, SIG_DFL);  // a shell has what it starts in the background ignore it
  const SignalQueue queue{SignalQueue::Impatience::ends, std::chrono::milliseconds(20)};
  ::kill(::getpid(), SIGTERM);
  (void)has_some(queue);
  ::kill(::getpid(), SIGINT);
  ::poll(nullptr, 0, 60'000);
}

TEST(SignalQueue, ALoopThatIsHeldUpEndsWithTheProcessWhereAPersonAsksTwice) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(be_held_up(), ::testing::ExitedWithCode(128 + SIGTERM), "ended at once");
}

}  // namespace
}  // namespace mlenv
