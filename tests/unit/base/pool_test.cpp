#include "base/pool.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <stdexcept>

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(Pool, DoesEachItemOnce) {
  Pool pool{3};
  EXPECT_EQ(pool.size(), 3U);
  std::vector<int> done(1000);
  pool.for_each(done.size(), [&](std::size_t i) { ++done[i]; });
  EXPECT_EQ(done, std::vector<int>(1000, 1));
  pool.for_each(0, [](std::size_t) { throw std::logic_error("never"); });
}

TEST(Pool, WorksInParallel) {
  Pool pool{3};
  // Each item waits for the others: fewer threads would never finish.
  std::latch all{3};
  pool.for_each(3, [&](std::size_t) { all.arrive_and_wait(); });
}

TEST(Pool, RethrowsTheLowestFailureAndStopsTakingMore) {
  Pool pool{2};
  std::atomic<int> started = 0;
  std::latch both{2};
  try {
    pool.for_each(1000, [&](std::size_t i) {
      ++started;
      if (i < 2) {
        both.arrive_and_wait();
        throw std::runtime_error(std::to_string(i));
      }
    });
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "0");
  }
  EXPECT_LT(started, 1000);
  std::atomic<int> after = 0;
  pool.for_each(10, [&](std::size_t) { ++after; });
  EXPECT_EQ(after, 10);
}

TEST(Pool, SubmittedWorkStartsInOrder) {
  std::vector<int> order;
  {
    Pool pool{1};
    std::latch done{1};
    for (int i = 0; i < 100; ++i) pool.submit([&order, i] { order.push_back(i); });
    pool.submit([&] { done.count_down(); });
    done.wait();
  }
  ASSERT_EQ(order.size(), 100U);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(Pool, CallersMayShareIt) {
  Pool pool{2};
  std::atomic<int> total = 0;
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] { pool.for_each(50, [&](std::size_t) { ++total; }); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 200);
}

TEST(Pool, ThereIsAtLeastOneProcessor) {
  EXPECT_GE(usable_processors(), 1U);
  EXPECT_EQ(Pool{}.size(), usable_processors());
}

}  // namespace
}  // namespace mlenv
