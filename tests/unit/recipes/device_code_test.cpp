#include "recipes/device_code.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/fatbin.hpp"
#include "tests/support/zip_builder.hpp"

namespace mlenv {
namespace {

using test::fatbin;

class DeviceCodeOfWheels : public testing::Test {
 protected:
  LockedWheel add(const std::string& name, const std::map<std::string, std::string>& files) {
    test::ZipBuilder zip;
    for (const auto& [path, text] : files) zip.add(path, text, /*deflated=*/text.size() > 100);
    const std::string bytes = zip.finish();
    LockedWheel wheel{name,
                      "1.0",
                      name + "-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
                      bytes.size(),
                      Digest::of(bytes),
                      true};
    write_file(folder_.path() / wheel.file, bytes, false);
    lock_.wheels.push_back(wheel);
    return wheel;
  }

  std::vector<std::string> missing() {
    return missing_device_code(
        lock_,
        [&](const LockedWheel& wheel) -> std::optional<fs::path> {
          fs::path path = folder_.path() / wheel.file;
          if (!fs::exists(path)) return std::nullopt;
          return path;
        },
        folder_.path() / "cache", progress_);
  }

  TemporaryFolder folder_{temporary_root(), "mlenv-test-"};
  Lock lock_;
  QuietProgress progress_;
};

TEST_F(DeviceCodeOfWheels, AreReadForTheGpusThatAreAskedFor) {
  add("plain", {{"plain/a.so", "no device code at all"}});
  const LockedWheel torch =
      add("torch", {{"torch/lib/libtorch_cuda.so", fatbin({{2, 80}, {2, 90}})},
                    {"torch/lib/liblinalg.so.1", fatbin({{1, 90}})},
                    {"torch/data.bin", fatbin({{2, 70}})}});
  lock_.request.gpus = {"sm_86", "sm_90", "sm_120"};
  EXPECT_EQ(missing(), std::vector<std::string>{});
  lock_.request.gpus = {"sm_70", "sm_86"};
  const std::vector<std::string> expected = {
      "torch 1.0 holds code for sm_80 sm_90 compute_90, and none that runs on sm_70"};
  EXPECT_EQ(missing(), expected);

  // What was read is remembered, also when the wheel is damaged since; a damaged memory is not
  // used.
  const fs::path path = folder_.path() / torch.file;
  const std::string bytes = read_file(path);
  write_file(path, "no wheel", false);
  EXPECT_EQ(missing(), expected);
  write_file(folder_.path() / "cache/device-code" / torch.digest.hex(), "sm_70", false);
  EXPECT_THROW((void)missing(), Error);
  write_file(path, bytes, false);
  EXPECT_EQ(missing(), expected);
}

TEST_F(DeviceCodeOfWheels, OfNvidiaAndAbsentOnesAreLeftOut) {
  add("nvidia-cusparselt-cu13", {{"nvidia/a.so", fatbin({{2, 80}})}});
  const LockedWheel gone = add("torch", {{"torch/a.so", fatbin({{2, 80}})}});
  fs::remove(folder_.path() / gone.file);
  lock_.request.gpus = {"sm_75"};
  EXPECT_EQ(missing(), std::vector<std::string>{});
}

}  // namespace
}  // namespace mlenv
