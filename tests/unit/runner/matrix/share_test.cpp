// How a machine is divided among variations.
#include "runner/matrix/share.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::matrix {
namespace {

Machine machine(std::size_t gpus, double processors = 16) {
  Machine out;
  out.processors = processors;
  out.memory_bytes = std::uint64_t{64} << 30U;
  for (std::size_t i = 0; i < gpus; ++i) {
    out.gpus.push_back({std::string(kNvidiaGpu), std::to_string(i)});
  }
  return out;
}

Asked asked(std::string_view gpus, std::optional<std::size_t> at_once = {}) {
  Asked out;
  out.variations = 100;
  out.at_once = at_once;
  out.gpus = parse_gpus(gpus);
  return out;
}

/// `0,1 2,3 x8`: the GPUs of each that runs at once, and threads.
std::string shown(const Share& share) {
  std::string text;
  for (const auto& own : share.gpus) {
    std::vector<std::string> names;
    for (const CdiName& one : own) names.push_back(one.device);
    text += join(names, ",") + " ";
  }
  if (share.gpus.empty()) text = std::to_string(share.at_once) + " ";
  text += share.threads ? "x" + std::to_string(*share.threads) : "-";
  return text + (share.gpus_are_shared ? " shared" : "");
}

std::string divided(std::size_t gpus, std::string_view word,
                    std::optional<std::size_t> at_once = {}) {
  return shown(divide(machine(gpus), asked(word, at_once)));
}

TEST(MatrixShare, OfGpus) {
  EXPECT_EQ(divided(4, ""), "0 1 2 3 x4");
  EXPECT_EQ(divided(4, "1"), "0 1 2 3 x4");
  EXPECT_EQ(divided(4, "2"), "0,1 2,3 x8");
  EXPECT_EQ(divided(4, "3"), "0,1,2 -");
  EXPECT_EQ(divided(4, "all"), "0,1,2,3 -");
  EXPECT_EQ(divided(4, "all", 2), "0,1 2,3 x8");
  EXPECT_EQ(divided(4, "", 2), "0,1 2,3 x8");
  EXPECT_EQ(divided(4, "1", 2), "0 1 x8");
  EXPECT_EQ(divided(1, ""), "0 -");
}

TEST(MatrixShare, MoreAtOnceThanGpusShareThem) {
  EXPECT_EQ(divided(2, "", 4), "0 1 0 1 x4 shared");
  EXPECT_EQ(divided(1, "", 3), "0 0 0 x5 shared");
  try {
    (void)divided(4, "2", 3);
    FAIL() << "it was divided";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "usage");
    EXPECT_NE(std::string(error.what()).find("takes 6 GPUs, and there are 4"), std::string::npos);
  }
}

TEST(MatrixShare, MoreGpusThanThereAre) {
  try {
    (void)divided(2, "3");
    FAIL() << "it was divided";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "no-device");
  }
}

TEST(MatrixShare, OfProcessors) {
  EXPECT_EQ(divided(0, "none"), "1 -");
  EXPECT_EQ(divided(0, "none", 3), "3 x5");
  EXPECT_EQ(divided(0, "none", 64), "64 x1");
  Asked limited = asked("none");
  limited.limits.cpus = 4;
  EXPECT_EQ(shown(divide(machine(0), limited)), "4 x4");
  limited.limits.memory_bytes = std::uint64_t{24} << 30U;
  EXPECT_EQ(shown(divide(machine(0), limited)), "2 x4");
  limited.limits.cpus = 0.5;
  limited.limits.memory_bytes.reset();
  EXPECT_EQ(shown(divide(machine(0, 2), limited)), "4 x1");
  // Memory alone does not say that processors are for several.
  limited.limits.cpus.reset();
  limited.limits.memory_bytes = std::uint64_t{1} << 30U;
  EXPECT_EQ(shown(divide(machine(0), limited)), "1 -");
  // On GPUs it counts beside them.
  limited.gpus = parse_gpus("1");
  limited.limits.memory_bytes = std::uint64_t{24} << 30U;
  EXPECT_EQ(shown(divide(machine(4), limited)), "0 1 x8");
}

TEST(MatrixShare, NoMoreThanThereAreVariations) {
  Asked few = asked("", 8);
  few.variations = 2;
  EXPECT_EQ(shown(divide(machine(0), few)), "2 x8");
  EXPECT_EQ(shown(divide(machine(8), few)), "0 1 x8");
  few.variations = 1;
  EXPECT_EQ(shown(divide(machine(8), few)), "0 -");
}

TEST(MatrixShare, Threads) {
  const std::vector<std::string> all = thread_variables(3, {});
  EXPECT_EQ(all.front(), "OMP_NUM_THREADS=3");
  EXPECT_EQ(thread_variables(3, {"PATH", "OMP_NUM_THREADS"}), std::vector<std::string>{});
  const std::vector<std::string> others = thread_variables(3, {"MKL_NUM_THREADS"});
  EXPECT_EQ(others.size(), all.size() - 1);
  EXPECT_EQ(std::count(others.begin(), others.end(), "MKL_NUM_THREADS=3"), 0);
}

}  // namespace
}  // namespace mlenv::matrix
