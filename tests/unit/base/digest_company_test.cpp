#include "base/digest_company.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "tests/support/generator.hpp"

namespace mlenv {
namespace {

TEST(DigestCompany, EachThreadGetsItsOwnDigest) {
  constexpr std::size_t kThreads = 5;
  std::vector<Digest> found(kThreads, Digest::of(""));
  std::vector<Digest> expected(kThreads, Digest::of(""));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::string text = test::noise(300'000, i);
      Sha256InCompany company;
      Sha256 alone;
      for (std::size_t round = 0; round < 60; ++round) {
        // Short and long pieces, of lengths that end within blocks.
        const std::size_t length = (round * 7919 + i * 104'729) % text.size();
        company.write(as_bytes(text).first(length));
        alone.write(as_bytes(text).first(length));
      }
      found[i] = company.finish();
      expected[i] = alone.finish();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
}

TEST(DigestCompany, AloneAndAgain) {
  const std::string text = test::noise(1'000'000, 9);
  Sha256InCompany hash;
  for (int round = 0; round < 3; ++round) {
    hash.write(as_bytes(text));
    EXPECT_EQ(hash.finish(), Digest::of(text));
    hash.restart();
  }
}

}  // namespace
}  // namespace mlenv
