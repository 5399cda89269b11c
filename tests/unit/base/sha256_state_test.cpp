#include "base/sha256_state.hpp"

#include <array>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

Bytes random_bytes(std::size_t count, unsigned seed) {
  std::minstd_rand random{seed};
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8U);
  return bytes;
}

void write_together(std::initializer_list<Sha256State::Part> parts) {
  Sha256State::write_together(std::span(parts.begin(), parts.size()));
}

TEST(Sha256State, SeveralInStepGiveWhatSingleOnesGive) {
  const Bytes text = random_bytes(70'000, 1);
  std::minstd_rand random{3};
  for (int round = 0; round < 200; ++round) {
    std::array<Sha256State, Sha256State::kTogether> states;
    std::array<Sha256, Sha256State::kTogether> alone;
    const std::size_t count = 1 + static_cast<std::size_t>(round) % states.size();
    for (int write = 0; write < 8; ++write) {
      // Lengths around block boundaries, and none at all.
      const std::size_t limit = write % 2 == 0 ? 200 : 3000;
      std::vector<Sha256State::Part> parts;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t length = random() % 4 == 0 ? 0 : random() % limit;
        parts.push_back({&states.at(i), ByteView(text).subspan(random() % 60'000, length)});
        alone.at(i).write(parts.back().bytes);
      }
      Sha256State::write_together(parts);
    }
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(states.at(i).finish(), alone.at(i).finish()) << "round " << round << ", " << i;
    }
  }
}

TEST(Sha256State, NothingAtAll) {
  Sha256State first;
  Sha256State second;
  write_together({{&first, {}}, {&second, {}}});
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
    write_together({{&first, block}, {&second, block}});
    alone.write(block);
  }
  const Digest expected = alone.finish();
  EXPECT_EQ(first.finish(), expected);
  EXPECT_EQ(second.finish(), expected);
}

}  // namespace
}  // namespace mlenv
