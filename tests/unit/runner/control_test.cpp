#include "runner/local/control.hpp"

#include <sys/socket.h>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(ControlPackets, WhatWasSaidBeforeTheOtherSideLeftIsHeard) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
  const Fd ours{ends[0]};
  Fd theirs{ends[1]};
  ASSERT_TRUE(send_packet(theirs.get(), "the outcome"));
  ASSERT_TRUE(send_packet(ours.get(), "a signal that nobody reads"));
  theirs.reset();
  EXPECT_EQ(receive_packet(ours.get()).bytes, "the outcome");
  EXPECT_EQ(receive_packet(ours.get()).bytes, "");
}

}  // namespace
}  // namespace mlenv
