#include "runner/repeat/deterministic.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "runner/local/job.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class Deterministic : public testing::Test {
 protected:
  /// The job's variables once `run` is deterministic.
  Strings environment(LocalRun run, const Variables& caller = {}) {
    run.scratch = scratch_.path();
    make_deterministic(run, 7, caller);
    mounts_ = run.mounts;
    return job_environment(run, {}, caller, "/root");
  }
  static bool has(const Strings& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  }

  TemporaryFolder scratch_{temporary_root()};
  std::vector<Mount> mounts_;
};

TEST_F(Deterministic, LiesOverTheImageAndUnderThePerson) {
  LocalRun run;
  run.config.env = {"OMP_NUM_THREADS=64", "PYTHONHASHSEED=random"};
  run.env = {"OMP_NUM_THREADS=2", "NCCL_ALGO"};
  const Strings words = environment(run, {{"NCCL_ALGO", "Tree"}});
  EXPECT_TRUE(has(words, "OMP_NUM_THREADS=2"));
  EXPECT_TRUE(has(words, "PYTHONHASHSEED=0"));
  EXPECT_TRUE(has(words, "NCCL_ALGO=Tree"));
  EXPECT_TRUE(has(words, "MLENV_SEED=7"));
  EXPECT_TRUE(has(words, "CUBLAS_WORKSPACE_CONFIG=:4096:8"));
}

TEST_F(Deterministic, XlaFlagsAreAddedTo) {
  LocalRun run;
  EXPECT_TRUE(has(environment(run), "XLA_FLAGS=--xla_gpu_deterministic_ops=true"));
  run.config.env = {"XLA_FLAGS=--xla_a=1"};
  EXPECT_TRUE(has(environment(run), "XLA_FLAGS=--xla_a=1 --xla_gpu_deterministic_ops=true"));
  run.env = {"XLA_FLAGS=--xla_gpu_deterministic_ops=false"};
  EXPECT_TRUE(has(environment(run), "XLA_FLAGS=--xla_gpu_deterministic_ops=false"));
}

TEST_F(Deterministic, ThePythonFileComesFirst) {
  LocalRun run;
  EXPECT_TRUE(has(environment(run), "PYTHONPATH=/run/mlenv-python"));
  run.config.env = {"PYTHONPATH=/image"};
  EXPECT_TRUE(has(environment(run), "PYTHONPATH=/run/mlenv-python:/image"));
  run.env = {"PYTHONPATH=/person"};
  EXPECT_TRUE(has(environment(run), "PYTHONPATH=/run/mlenv-python:/person"));
  ASSERT_EQ(mounts_.size(), 1U);
  EXPECT_TRUE(mounts_[0].read_only);
  EXPECT_EQ(read_file(mounts_[0].source / "sitecustomize.py"), python_layer());
}

TEST(DeterministicVariables, AreSortedSoThatARecordReads) {
  const Strings words = deterministic_variables(0);
  EXPECT_TRUE(std::is_sorted(words.begin(), words.end()));
}

}  // namespace
}  // namespace mlenv
