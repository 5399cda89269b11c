#include <gtest/gtest.h>

#include "runner/engine/engine_devices.hpp"
#include "runner/engine/known_hooks.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

CdiHook hook(std::string path, std::vector<std::string> argv) {
  return {"createContainer", std::move(path), std::move(argv), {}, std::nullopt};
}

TEST(KnownHooks, AreThoseOfNvidiasToolkit) {
  const HookWork work = work_of_hooks(
      {hook("/usr/bin/nvidia-cdi-hook", {"nvidia-cdi-hook", "create-symlinks", "--link",
                                         "libcuda.so.1::/usr/lib/libcuda.so", "--link=../a::/b/c"}),
       hook("/usr/bin/nvidia-ctk", {"nvidia-ctk", "hook", "update-ldcache", "--ldconfig-path",
                                    "@/sbin/ldconfig", "--folder", "/usr/lib/x", "--folder=/y"}),
       hook("/usr/bin/nvidia-cdi-hook",
            {"nvidia-cdi-hook", "chmod", "--mode", "755", "--path", "/dev/dri"}),
       hook("/usr/bin/nvidia-cdi-hook", {"nvidia-cdi-hook", "disable-device-node-modification"})});
  EXPECT_EQ(work.links, (std::vector<HookWork::Link>{{"/usr/lib/libcuda.so", "libcuda.so.1"},
                                                     {"/b/c", "../a"}}));
  EXPECT_EQ(work.library_folders, (std::vector<std::string>{"/usr/lib/x", "/y"}));
  EXPECT_EQ(work.modes, (std::vector<HookWork::Mode>{{"/dev/dri", 0755}}));
  EXPECT_FALSE(work.shows_gpus);
  EXPECT_FALSE(work.limits_memory);
}

/// All that its generator writes into a specification, as of release 1.20.
TEST(KnownHooks, AreAllThatNvidiasGeneratorWrites) {
  const std::string program = "/usr/bin/nvidia-cdi-hook";
  const HookWork work = work_of_hooks(
      {hook(program, {"nvidia-cdi-hook", "create-symlinks", "--link",
                      "../libnvidia-allocator.so.1::/usr/lib/gbm/nvidia-drm_gbm.so"}),
       hook(program, {"nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version=580.65.06"}),
       hook(program, {"nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib/x"}),
       hook(program, {"nvidia-cdi-hook", "disable-device-node-modification"}),
       hook(program, {"nvidia-cdi-hook", "update-application-profile"}),
       hook(program, {"nvidia-cdi-hook", "apply-cuda-memory-limits", "--driver-root", "/",
                      "--gpu-id", "GPU-0"})});
  EXPECT_TRUE(work.shows_gpus);
  EXPECT_TRUE(work.limits_memory);
  EXPECT_EQ(code_of([&] {
              require_no_memory_limits(work, {"A=1", "NVIDIA_GPU_MEMORY_LIMIT=9"});
            }),
            "no-device");
  require_no_memory_limits(work, {"NVIDIA_GPU_MEMORY_LIMITS=9"});
  require_no_memory_limits({}, {"NVIDIA_GPU_MEMORY_LIMIT=9"});
}

TEST(ApplicationProfile, NamesGpusByTheirBits) {
  EXPECT_EQ(application_profile({0, 3, 64}),
            R"({"profiles":[{"name":"_container_","settings":["EGLVisibleDGPUDevices",0x9]}],)"
            R"("rules":[{"pattern":[],"profile":"_container_"}]})");
  EXPECT_EQ(application_profile({}), "");
  EXPECT_EQ(application_profile({64}), "");
}

TEST(KnownHooks, OthersAreRefused) {
  for (const CdiHook& one :
       {hook("/bin/true", {"true"}), hook("/usr/bin/nvidia-cdi-hook", {}),
        hook("/usr/bin/nvidia-cdi-hook", {"nvidia-cdi-hook", "new-thing"}),
        hook("/usr/bin/nvidia-ctk", {"nvidia-ctk", "update-ldcache"}),
        hook("/usr/bin/nvidia-cdi-hook", {"x", "create-symlinks", "--link", "no-link"}),
        hook("/usr/bin/nvidia-cdi-hook", {"x", "create-symlinks", "--link", "a::relative"}),
        hook("/usr/bin/nvidia-cdi-hook", {"x", "chmod", "--mode", "rwx", "--path", "/a"})}) {
    EXPECT_EQ(code_of([&] { (void)work_of_hooks({one}); }), "no-device") << one.path;
  }
}

}  // namespace
}  // namespace mlenv
