#include "base/hash_exchange.hpp"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/generator.hpp"

namespace mlenv {
namespace {

using test::Generator;
using test::noise;

Bytes piece_of(std::string_view text) {
  const ByteView bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

/// Writes pieces of random lengths; what it wrote is hashed alone as well.
Digest fed(HashExchange::Stream& stream, std::uint64_t seed, Digest& expected) {
  Generator random{seed};
  const std::string text = noise(1U << 16U, seed);
  Sha256 alone;
  Sha256State beside;
  Sha256 beside_alone;
  for (int i = 0; i < 200; ++i) {
    const std::size_t length = random.below(i % 4 == 0 ? 100 : text.size());
    const std::string_view part = std::string_view(text).substr(0, length);
    if (i % 7 == 0) {
      const std::string_view other = std::string_view(text).substr(length);
      stream.write_beside(as_bytes(part), beside, as_bytes(other));
      beside_alone.write(as_bytes(other));
    } else if (i % 3 == 0) {
      stream.write_copy(as_bytes(part));
    } else {
      Bytes piece = stream.buffer();
      EXPECT_TRUE(piece.empty());
      piece.assign(as_bytes(part).begin(), as_bytes(part).end());
      stream.write(std::move(piece));
    }
    alone.write(as_bytes(part));
  }
  EXPECT_EQ(beside.finish(), beside_alone.finish());
  expected = alone.finish();
  return stream.finish();
}

TEST(HashExchange, OneStreamAlone) {
  HashExchange exchange;
  HashExchange::Stream stream{exchange};
  Digest expected = Digest::of("");
  EXPECT_EQ(fed(stream, 1, expected), expected);
  stream.start_again();
  EXPECT_EQ(stream.finish(), Digest::of(""));
}

TEST(HashExchange, ManyThreadsAtOnce) {
  HashExchange exchange;
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (std::uint64_t i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t round = 0; round < 5; ++round) {
        HashExchange::Stream stream{exchange};
        Digest expected = Digest::of("");
        if (fed(stream, 10 * i + round, expected) == expected) ++right;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 30);
}

TEST(HashExchange, WhatIsHeldIsHashedByWhoeverComesNext) {
  HashExchange exchange;
  HashExchange::Stream first{exchange};
  HashExchange::Stream second{exchange};
  first.write(piece_of("one"));
  second.write(piece_of("two"));  // takes both
  EXPECT_EQ(first.buffer().size(), 0U);
  first.write(piece_of(" more"));
  EXPECT_EQ(second.finish(), Digest::of("two"));
  EXPECT_EQ(first.finish(), Digest::of("one more"));
}

TEST(HashExchange, StreamsMayBeGivenUp) {
  HashExchange exchange;
  HashExchange::Stream kept{exchange};
  {
    HashExchange::Stream dropped{exchange};
    dropped.write(piece_of("never asked for"));
  }
  kept.write(piece_of("forgotten"));
  kept.start_again();
  kept.write(piece_of("a"));
  HashExchange::Stream other{exchange};
  other.write({});
  EXPECT_EQ(other.finish(), Digest::of(""));
  EXPECT_EQ(kept.finish(), Digest::of("a"));
}

}  // namespace
}  // namespace mlenv
