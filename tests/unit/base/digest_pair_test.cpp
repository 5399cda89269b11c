#include "base/digest_pair.hpp"

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

TEST(DigestPair, GivesWhatTwoSingleOnesGive) {
  const Bytes first = random_bytes(70'000, 1);
  const Bytes second = random_bytes(70'000, 2);
  std::minstd_rand random{3};
  for (int round = 0; round < 200; ++round) {
    Sha256Pair pair;
    Sha256 alone_first;
    Sha256 alone_second;
    for (int write = 0; write < 8; ++write) {
      // Lengths around block boundaries, and none at all.
      const std::size_t limit = write % 2 == 0 ? 200 : 3000;
      const ByteView a = ByteView(first).subspan(random() % 60'000, random() % limit);
      const ByteView b =
          ByteView(second).subspan(random() % 60'000, write % 3 == 0 ? 0 : random() % limit);
      pair.write(a, b);
      alone_first.write(a);
      alone_second.write(b);
    }
    EXPECT_EQ(pair.first_size_bytes(), alone_first.size_bytes());
    EXPECT_EQ(pair.second_size_bytes(), alone_second.size_bytes());
    const auto [one, two] = pair.finish();
    ASSERT_EQ(one, alone_first.finish()) << "round " << round;
    ASSERT_EQ(two, alone_second.finish()) << "round " << round;
  }
}

TEST(DigestPair, NothingAtAll) {
  Sha256Pair pair;
  pair.write({}, {});
  const auto [first, second] = pair.finish();
  EXPECT_EQ(first, Digest::of(""));
  EXPECT_EQ(second, Digest::of(""));
}

TEST(DigestPair, MoreThanTheLowWordOfBitsHolds) {
  // 2^32 bits are 512 MiB: the length's upper word is needed.
  const Bytes block = random_bytes(std::size_t{1} << 20, 4);
  Sha256Pair pair;
  Sha256 alone;
  for (int i = 0; i < 520; ++i) {
    pair.write(block, block);
    alone.write(block);
  }
  const Digest expected = alone.finish();
  const auto [first, second] = pair.finish();
  EXPECT_EQ(first, expected);
  EXPECT_EQ(second, expected);
}

}  // namespace
}  // namespace mlenv
