#include <gtest/gtest.h>

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
  EXPECT_FALSE(work.wants_cuda_compat);
  EXPECT_TRUE(
      work_of_hooks({hook("/usr/bin/nvidia-cdi-hook", {"nvidia-cdi-hook", "enable-cuda-compat"})})
          .wants_cuda_compat);
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
