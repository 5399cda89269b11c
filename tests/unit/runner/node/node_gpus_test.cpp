#include "runner/node/node_gpus.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

std::string devices(const GpuChoice& choice) {
  std::string text;
  for (const CdiName& one : choice.devices) text += one.device + " ";
  return text;
}

TEST(NodeGpus, AreWhatTheWordSaysWhereNobodyHasGivenSome) {
  EXPECT_EQ(node_choice("", {}).kind, GpuChoice::Kind::none);
  EXPECT_EQ(node_choice("none", {}).kind, GpuChoice::Kind::none);
  EXPECT_EQ(node_choice("auto", {}).kind, GpuChoice::Kind::all);
  EXPECT_EQ(node_choice("all", {}).kind, GpuChoice::Kind::all);
  EXPECT_EQ(node_choice("3", {}).count, 3U);
  EXPECT_EQ(devices(node_choice("device=1,3", {})), "1 3 ");
}

TEST(NodeGpus, AreThoseThatABatchSystemHasGiven) {
  EXPECT_EQ(devices(node_choice("all", {{"SLURM_STEP_GPUS", "2,5"}})), "2 5 ");
  EXPECT_EQ(devices(node_choice("auto", {{"SLURM_JOB_GPUS", "0-2"}})), "0 1 2 ");
  EXPECT_EQ(devices(node_choice("1", {{"CUDA_VISIBLE_DEVICES", "4,6"}})), "4 ");
  // The step's are as the node counts; within its devices CUDA may count anew.
  EXPECT_EQ(devices(node_choice("all", {{"SLURM_STEP_GPUS", "3"}, {"CUDA_VISIBLE_DEVICES", "0"}})),
            "3 ");
  // Named ones are the person's own affair.
  EXPECT_EQ(devices(node_choice("device=7", {{"SLURM_STEP_GPUS", "2"}})), "7 ");
  EXPECT_EQ(devices(node_choice(
                "all", {{"CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6"}})),
            "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6 ");
}

TEST(NodeGpus, AreCountedAsABatchSystemHasGivenThem) {
  EXPECT_EQ(given_gpus({}), std::nullopt);
  EXPECT_EQ(given_gpus({{"SLURM_STEP_GPUS", "2,5"}, {"CUDA_VISIBLE_DEVICES", "0"}}), 2U);
  EXPECT_EQ(given_gpus({{"SLURM_JOB_GPUS", "0-2,7"}}), 4U);
  EXPECT_EQ(given_gpus({{"CUDA_VISIBLE_DEVICES", ""}}), 0U);
  EXPECT_EQ(given_gpus({{"CUDA_VISIBLE_DEVICES", "-1"}}), 0U);
  EXPECT_EQ(given_gpus({{"CUDA_VISIBLE_DEVICES", "1,-1,2"}}), 1U);
  EXPECT_EQ(given_gpus({{"CUDA_VISIBLE_DEVICES", "0-"}}), 1U);
  EXPECT_EQ(given_gpus({{"CUDA_VISIBLE_DEVICES", "99999999999999999999-1"}}), 1U);
  EXPECT_EQ(given_gpus({{"CUDA_VISIBLE_DEVICES", "MIG-1-2,MIG-3-4"}}), 2U);
}

TEST(NodeGpus, AreNotMoreThanWereGiven) {
  const auto code = [](std::string_view word, const char* given) {
    try {
      (void)node_choice(word, {{"SLURM_STEP_GPUS", given}});
    } catch (const Error& error) {
      return error.code();
    }
    return std::string("none");
  };
  EXPECT_EQ(code("3", "0,1"), "no-device");
  EXPECT_EQ(code("all", ""), "no-device");
  EXPECT_EQ(node_choice("auto", {{"SLURM_STEP_GPUS", ""}}).kind, GpuChoice::Kind::none);
}

}  // namespace
}  // namespace mlenv::job
