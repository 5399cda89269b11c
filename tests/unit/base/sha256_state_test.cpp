#include "base/sha256_state.hpp"

#include <random>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random{seed};
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8U);
  return bytes;
}

TEST(Sha256State, TwoInStepGiveWhatTwoSingleOnesGive) {
  const Bytes first = random_bytes(70'000, 1);
  const Bytes second = random_bytes(70'000, 2);
  std::minstd_rand random{3};
  for (int round = 0; round < 200; ++round) {
    Sha256State one;
    Sha256State two;
    Sha256 alone_first;
    Sha256 alone_second;
    for (int write = 0; write < 8; ++write) {
      // Lengths around block boundaries, and none at all.
      const std::size_t limit = write % 2 == 0 ? 200 : 3000;
      const ByteView a = ByteView(first).subspan(random() % 60'000, random() % limit);
      const ByteView b =
          ByteView(second).subspan(random() % 60'000, write % 3 == 0 ? 0 : random() % limit);
      Sha256State::write_both(one, a, two, b);
      alone_first.write(a);
      alone_second.write(b);
    }
    ASSERT_EQ(one.finish(), alone_first.finish()) << "round " << round;
    ASSERT_EQ(two.finish(), alone_second.finish()) << "round " << round;
  }
}

TEST(Sha256State, NothingAtAll) {
  Sha256State first;
  Sha256State second;
  Sha256State::write_both(first, {}, second, {});
  EXPECT_EQ(first.finish(), Digest::of(""));
  EXPECT_EQ(second.finish(), Digest::of(""));
  first.start_again();
  first.write(as_bytes("again"));
  EXPECT_EQ(first.finish(), Digest::of("again"));
}

TEST(Sha256State, MoreThanTheLowWordOfBitsHolds) {
  // 2^32 bits are 512 MiB: the length's upper word is needed.
  const Bytes block = random_bytes(std::size_t{1} << 20, 4);
  Sha256State first;
  Sha256State second;
  Sha256 alone;
  for (int i = 0; i < 520; ++i) {
    Sha256State::write_both(first, block, second, block);
    alone.write(block);
  }
  const Digest expected = alone.finish();
  EXPECT_EQ(first.finish(), expected);
  EXPECT_EQ(second.finish(), expected);
}

}  // namespace
}  // namespace mlenv
