#include "builder/image_config.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include "tests/support/strings.hpp"

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

bool has_word(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

TEST(ImageConfig, SaysWhatTheLockSaysOfCuda) {
  Lock lock = cuda_lock();
  const ImageConfig plain = image_config(lock, std::nullopt);
  EXPECT_TRUE(has_word(plain.env, "NVIDIA_REQUIRE_CUDA=driver>=580"));
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
  EXPECT_TRUE(has_word(demanded.env, "NVIDIA_REQUIRE_CUDA=driver>=580.65.06"));
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
  EXPECT_TRUE(has_word(config.env, "CUDA_HOME=" + home));
  EXPECT_TRUE(has_word(config.env, "LIBRARY_PATH=" + home + "/lib"));
  EXPECT_TRUE(std::any_of(config.env.begin(), config.env.end(), [&](const std::string& one) {
    return one.starts_with("PATH=/opt/venv/bin:") && one.ends_with(":" + home + "/bin");
  }));
  // The recipe's own variables go before.
  lock.settings.env["CUDA_HOME"] = "/usr/local/cuda";
  EXPECT_TRUE(has_word(image_config(lock, std::nullopt).env, "CUDA_HOME=/usr/local/cuda"));
}

Lock lock_on_image() {
  Lock lock;
  lock.request.base = "registry.example/base:1";
  lock.settings.name = "a";
  lock.python = "3.12.7";
  lock.base = LockedBase{.manifest = Digest::of("manifest"),
                         .config = {std::string(kConfigType), Digest::of("config"), 6},
                         .layers = {},
                         .interpreter = "/usr/local/bin/python3.12",
                         .glibc = "2.41"};
  return lock;
}

ImageConfig base_config() {
  ImageConfig base;
  base.env = {"PATH=/usr/local/bin:/bin", "LANG=C", "MODE=base", "KEEP=a=b"};
  base.entrypoint = {"/entry"};
  base.command = {"serve"};
  base.workdir = "/srv";
  base.user = "1000:1000";
  base.labels = {{"vendor", "x"},
                 {"org.opencontainers.image.title", "base"},
                 {"dev.mlenv.lock", "sha256:other"}};
  return base;
}

TEST(ImageConfig, ABaseGoesOnWhereTheRecipeIsSilent) {
  const ImageConfig base = base_config();
  const ImageConfig config = image_config(lock_on_image(), std::nullopt, &base);
  EXPECT_EQ(config.env,
            (Strings{"KEEP=a=b", "LANG=C", "MODE=base", "PATH=/opt/venv/bin:/usr/local/bin:/bin",
                     "VIRTUAL_ENV=/opt/venv"}));
  EXPECT_EQ(config.entrypoint, base.entrypoint);
  EXPECT_EQ(config.command, base.command);
  EXPECT_EQ(config.workdir, "/srv");
  EXPECT_EQ(config.user, "1000:1000");
  EXPECT_EQ(config.labels.at("vendor"), "x");
  EXPECT_EQ(config.labels.at("org.opencontainers.image.title"), "a");
  EXPECT_EQ(config.labels.at("org.opencontainers.image.base.name"), "registry.example/base:1");
  EXPECT_EQ(config.labels.at("org.opencontainers.image.base.digest"), Digest::of("manifest").str());
  EXPECT_NE(config.labels.at("dev.mlenv.lock"), "sha256:other");
}

TEST(ImageConfig, TheRecipeWins) {
  Lock lock = lock_on_image();
  lock.request.base = "oci:/home/me/base";
  lock.settings.env = {{"MODE", "recipe"}};
  lock.settings.command = {"python", "train.py"};
  lock.settings.workdir = "/workspace";
  ImageConfig base = base_config();
  base.env[0] = "PATH=/opt/venv/bin:/bin";  // an image of ours
  const ImageConfig config = image_config(lock, std::nullopt, &base);
  EXPECT_EQ(config.env[2], "MODE=recipe");
  EXPECT_EQ(config.env[3], "PATH=/opt/venv/bin:/bin");
  EXPECT_EQ(config.entrypoint, Strings{});
  EXPECT_EQ(config.command, lock.settings.command);
  EXPECT_EQ(config.workdir, "/workspace");
  EXPECT_FALSE(config.labels.contains("org.opencontainers.image.base.name"));
}

TEST(ImageConfig, ABareBaseGetsWhatIsMissing) {
  Lock lock = lock_on_image();
  lock.python.clear();
  const ImageConfig base;
  const ImageConfig config = image_config(lock, std::nullopt, &base);
  EXPECT_EQ(config.command, Strings{"/bin/sh"});
  EXPECT_EQ(config.workdir, "/workspace");
  EXPECT_EQ(config.env,
            (Strings{"LANG=C.UTF-8",
                     "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}));
}

TEST(ImageConfig, NamesTheVariantOfArm64Alone) {
  Lock lock = cuda_lock();
  const ImageConfig plain = image_config(lock, std::nullopt);
  EXPECT_EQ(plain.architecture, "amd64");
  EXPECT_EQ(compose_image(plain, {}, 0).config.find("variant"), std::string::npos);
  lock.platform = "linux/arm64";
  const Image arm = compose_image(image_config(lock, std::nullopt), {}, 0);
  const ImageConfig read = parse_settings(arm.config);
  EXPECT_EQ(read.architecture, "arm64");
  EXPECT_EQ(read.variant, "v8");
}

}  // namespace
}  // namespace mlenv
