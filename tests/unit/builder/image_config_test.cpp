#include "builder/image_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace mlenv {
namespace {

Lock cuda_lock() {
  Lock lock;
  lock.settings.name = "a";
  lock.settings.workdir = "/workspace";
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.python = "3.11.2";
  lock.cuda = LockedCuda{.release = "13.0", .min_driver = "580"};
  return lock;
}

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

TEST(ImageConfig, SaysWhatTheLockSaysOfCuda) {
  Lock lock = cuda_lock();
  const ImageConfig plain = image_config(lock, std::nullopt);
  EXPECT_TRUE(has(plain.env, "NVIDIA_REQUIRE_CUDA=driver>=580"));
  EXPECT_EQ(plain.labels.at("dev.mlenv.cuda"), "13.0");
  for (const char* label : {"dev.mlenv.sm", "dev.mlenv.cudnn", "dev.mlenv.nccl"}) {
    EXPECT_FALSE(plain.labels.contains(label)) << label;
  }
  lock.revision = Lock::kWholeRecipe;
  lock.request.gpus = {"sm_90"};
  lock.cuda->min_driver = "580.65.06";
  lock.cuda->cudnn = "9.24.0.43";
  lock.cuda->nccl = "2.30.7";
  lock.cuda->architectures = {"sm_80", "sm_90"};
  const ImageConfig demanded = image_config(lock, std::nullopt);
  EXPECT_TRUE(has(demanded.env, "NVIDIA_REQUIRE_CUDA=driver>=580.65.06"));
  EXPECT_EQ(demanded.labels.at("dev.mlenv.min-driver"), "580.65.06");
  EXPECT_EQ(demanded.labels.at("dev.mlenv.sm"), "sm_80 sm_90");
  EXPECT_EQ(demanded.labels.at("dev.mlenv.cudnn"), "9.24.0.43");
  EXPECT_EQ(demanded.labels.at("dev.mlenv.nccl"), "2.30.7");
  EXPECT_EQ(demanded.env.size(), plain.env.size());
}

TEST(ImageConfig, PutsTheCompilerOnThePath) {
  Lock lock = cuda_lock();
  lock.request.libraries = {"nvcc"};
  const ImageConfig config = image_config(lock, std::nullopt);
  const std::string home = "/opt/venv/lib/python3/site-packages/nvidia/cu13";
  EXPECT_TRUE(has(config.env, "CUDA_HOME=" + home));
  EXPECT_TRUE(has(config.env, "LIBRARY_PATH=" + home + "/lib"));
  EXPECT_TRUE(std::any_of(config.env.begin(), config.env.end(), [&](const std::string& one) {
    return one.starts_with("PATH=/opt/venv/bin:") && one.ends_with(":" + home + "/bin");
  }));
  // The recipe's own variables go before.
  lock.settings.env["CUDA_HOME"] = "/usr/local/cuda";
  EXPECT_TRUE(has(image_config(lock, std::nullopt).env, "CUDA_HOME=/usr/local/cuda"));
}

}  // namespace
}  // namespace mlenv
