#include <gtest/gtest.h>
#include <array>

#include "recipes/compat/architecture.hpp"
#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/compat/framework_builds.hpp"
#include "recipes/resolve/versions.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

DeviceCode code(std::string_view text) {
  const auto parsed = parse_device_code(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(DeviceCode{});
}

TEST(Architecture, IsReadAndWritten) {
  for (const std::string_view text :
       {"sm_50", "sm_90", "sm_90a", "sm_100", "sm_100f", "compute_120"}) {
    EXPECT_EQ(code(text).name(), text);
  }
  EXPECT_EQ(code("sm_121").major, 12);
  EXPECT_EQ(code("sm_121").minor, 1);
  for (const std::string_view text : {"", "sm_", "sm_9", "sm_9.0", "sm90", "compute", "sm_1200"}) {
    EXPECT_FALSE(parse_device_code(text)) << text;
  }
  for (const std::string_view text : gpu_architectures()) EXPECT_EQ(code(text).name(), text);
}

TEST(Architecture, CodeRunsOnLaterMinorsAndPtxOnLaterMajors) {
  struct Case {
    std::string_view code;
    std::string_view gpu;
    bool runs;
  };
  constexpr std::array<Case, 17> kCases = {{{"sm_80", "sm_80", true},
                                            {"sm_80", "sm_86", true},
                                            {"sm_80", "sm_89", true},
                                            {"sm_86", "sm_80", false},
                                            {"sm_80", "sm_90", false},
                                            {"sm_90", "sm_89", false},
                                            {"sm_90a", "sm_90", true},
                                            {"sm_100", "sm_103", true},
                                            {"sm_100a", "sm_103", false},
                                            {"sm_100f", "sm_103", true},
                                            {"sm_100", "sm_120", false},
                                            {"compute_70", "sm_70", true},
                                            {"compute_70", "sm_121", true},
                                            {"compute_80", "sm_75", false},
                                            {"compute_90a", "sm_100", false},
                                            {"compute_100f", "sm_103", true},
                                            {"compute_100f", "sm_110", false}}};
  for (const Case& one : kCases) {
    EXPECT_EQ(runs_on(code(one.code), code(one.gpu)), one.runs) << one.code << " on " << one.gpu;
  }
}

TEST(Architecture, MachineCodeGoesBeforePtx) {
  const std::vector<DeviceCode> codes = {code("sm_75"), code("sm_80"), code("compute_80")};
  EXPECT_EQ(coverage(codes, code("sm_86")), Coverage::complete);
  EXPECT_EQ(coverage(codes, code("sm_90")), Coverage::by_ptx);
  EXPECT_EQ(coverage(codes, code("sm_70")), Coverage::none);
  EXPECT_EQ(coverage({}, code("sm_70")), Coverage::none);
}

TEST(Architecture, WhatPeopleWriteIsUnderstood) {
  for (const std::string_view text : {"sm90", "9.0", "90", "H100", "h200", "compute_90", "sm_90a",
                                      "SM_90", "NVIDIA H100", "sm_9.0"}) {
    EXPECT_EQ(meant_architecture(text), "sm_90") << text;
  }
  EXPECT_EQ(meant_architecture("RTX 4090"), "sm_89");
  EXPECT_EQ(meant_architecture("Tesla V100"), "sm_70");
  EXPECT_EQ(meant_architecture("all"), "");
}

TEST(CudaReleases, AreOrderedAndTheirDriversToo) {
  const auto releases = cuda_releases();
  for (std::size_t i = 1; i < releases.size(); ++i) {
    EXPECT_TRUE(std::is_gt(compare_versions(releases[i - 1].release, releases[i].release)));
    EXPECT_TRUE(std::is_gt(compare_versions(releases[i - 1].driver, releases[i].driver)));
  }
  for (const CudaRelease& one : releases) {
    // The floor is a driver of the major's first releases; that of 11 came after 11.0.
    if (one.release == "11.0") continue;
    EXPECT_TRUE(std::is_gteq(compare_versions(one.driver, cuda_driver_floor(one.release))))
        << one.release;
  }
  EXPECT_EQ(cuda_driver("12.6"), "560.28.03");
  EXPECT_EQ(cuda_driver("12.7"), "");
  EXPECT_EQ(cuda_driver_floor("12"), "525.60.13");
  EXPECT_EQ(cuda_driver_floor("12.6"), "525.60.13");
  EXPECT_EQ(cuda_driver_floor("10.2"), "440.33");
  EXPECT_EQ(cuda_driver_floor("99"), "");
}

TEST(CudaReleases, MakeCodeForGpusOfTheirTime) {
  struct Case {
    std::string_view release;
    std::string_view gpu;
    Coverage most;
  };
  constexpr std::array<Case, 10> kCases = {{{"11.8", "sm_37", Coverage::complete},
                                            {"12.0", "sm_37", Coverage::none},
                                            {"12.9", "sm_70", Coverage::complete},
                                            {"13.0", "sm_70", Coverage::none},
                                            {"13.5", "sm_75", Coverage::complete},
                                            {"12.6", "sm_100", Coverage::by_ptx},
                                            {"12.8", "sm_100", Coverage::complete},
                                            {"12.8", "sm_121", Coverage::complete},
                                            {"11.0", "sm_89", Coverage::complete},
                                            {"12.9", "sm_110", Coverage::by_ptx}}};
  for (const Case& one : kCases) {
    EXPECT_EQ(most_coverage(one.release, code(one.gpu)), one.most) << one.release << one.gpu;
  }
  EXPECT_EQ(most_coverage("12.7", code("sm_80")), std::nullopt);
  EXPECT_EQ(most_coverage("12.8", code("sm_99")), std::nullopt);
  for (const std::string_view gpu : gpu_architectures()) {
    EXPECT_TRUE(most_coverage("12.8", code(gpu))) << gpu;
  }
}

TEST(CudaLibraries, HaveAPackageForEachMajor) {
  EXPECT_EQ(packages_of(*find_cuda_library("cudnn")),
            (Strings{"nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13"}));
  EXPECT_EQ(packages_of(*find_cuda_library("cublas")),
            (Strings{"nvidia-cublas-cu11", "nvidia-cublas-cu12", "nvidia-cublas"}));
  EXPECT_TRUE(is_package_of(*find_cuda_library("nccl"), "nvidia-nccl-cu13"));
  EXPECT_FALSE(is_package_of(*find_cuda_library("nccl"), "nvidia-nccl"));
  EXPECT_EQ(find_cuda_library("nvcc"), nullptr);
}

TEST(FrameworkBuilds, AreKnownByVersionAndCuda) {
  const auto torch = known_device_code("torch", "2.10.0", "12.8");
  ASSERT_TRUE(torch);
  EXPECT_EQ(torch->front(), code("sm_70"));
  EXPECT_EQ(torch->back(), code("sm_120"));
  EXPECT_TRUE(known_device_code("torch", "2.10.1+cu128", "12.8"));
  EXPECT_FALSE(known_device_code("torch", "2.10.0", "12.6"));
  EXPECT_FALSE(known_device_code("torch", "2.1", "13.0"));
  EXPECT_FALSE(known_device_code("jaxlib", "0.10.2", "13.5"));
  // One build a version: it runs with every release of its major.
  EXPECT_TRUE(known_device_code("jax-cuda13-pjrt", "0.10.2", "13.5"));
  EXPECT_EQ(known_device_code("tensorflow", "2.21.0", "12.5"),
            known_device_code("tensorflow", "2.21.0", "12.9"));
}

}  // namespace
}  // namespace mlenv
