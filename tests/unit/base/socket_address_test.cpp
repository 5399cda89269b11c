#include "base/socket_address.hpp"

#include <gtest/gtest.h>
#include <cerrno>

namespace mlenv {
namespace {

TEST(SocketAddress, TakesNumbersAlone) {
  EXPECT_EQ(SocketAddress::of("192.0.2.1", 80)->port(), 80);
  EXPECT_EQ(SocketAddress::of("2001:db8::1", 8080)->port(), 8080);
  for (const char* none : {"", "localhost", "192.0.2", "192.0.2.256", "192.0.2.1 ", "2001:db8::g",
                           "fe80::1%eth0", "[::1]"}) {
    EXPECT_FALSE(SocketAddress::of(none, 1)) << none;
  }
}

TEST(SocketAddress, IsWhatASocketListensAt) {
  for (const char* loopback : {"127.0.0.1", "::1"}) {
    const auto any = SocketAddress::of(loopback, 0);
    ASSERT_TRUE(any);
    const Fd server = any->stream_socket();
    if (!server || ::bind(server.get(), any->get(), any->size()) != 0) {
      EXPECT_STREQ(loopback, "::1") << "a host without IPv6 is one, without IPv4 is none";
      continue;
    }
    ASSERT_EQ(::listen(server.get(), 1), 0);
    const auto own = SocketAddress::own_of(server);
    ASSERT_TRUE(own);
    EXPECT_NE(own->port(), 0);
    const auto there = SocketAddress::of(loopback, own->port());
    const Fd client = there->stream_socket();
    EXPECT_TRUE(::connect(client.get(), there->get(), there->size()) == 0 || errno == EINPROGRESS);
  }
  EXPECT_FALSE(SocketAddress::own_of(Fd{}));
}

}  // namespace
}  // namespace mlenv
