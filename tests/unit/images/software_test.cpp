#include "images/inspect/software.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace mlenv {
namespace {

class Software : public testing::Test {
 protected:
  void file(const std::string& path, const std::string& text = "", bool is_library = false) {
    layer_.entries.push_back({"file", path, "", 1});
    if (!text.empty()) layer_.texts.push_back({path, text});
    if (is_library) layer_.elves.push_back({path, {}});
  }
  void library(const std::string& path) { file(path, "", true); }
  void link(const std::string& path, const std::string& target) {
    layer_.entries.push_back({"link", path, target, 0});
  }
  ImageTree tree() {
    const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
    std::sort(layer_.entries.begin(), layer_.entries.end(), by_path);
    std::sort(layer_.texts.begin(), layer_.texts.end(), by_path);
    std::sort(layer_.elves.begin(), layer_.elves.end(), by_path);
    return ImageTree{{layer_}};
  }

 private:
  LayerFacts layer_;
};

TEST_F(Software, FrameworksSayWhatTheyWereBuiltFor) {
  file("v/torch-2.7.1+cu126.dist-info/METADATA");
  file("v/torch/version.py", R"(from typing import Optional
__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']
__version__ = '2.7.1+cu126'
debug = False
cuda: Optional[str] = '12.6'
)");
  file("v/tensorflow-2.21.0.dist-info/METADATA");
  file("v/tensorflow/python/platform/build_info.py",
       "build_info = collections.OrderedDict([('cpu_compiler', 'clang 18'), "
       "('cuda_version', '12.5.1'), ('is_cuda_build', True)])\n");
  file("w/tensorflow_cpu-2.21.0.dist-info/METADATA");
  file(
      "w/tensorflow/python/platform/build_info.py",
      "build_info = collections.OrderedDict([('is_cuda_build', False), ('is_rocm_build', False)])");
  file("v/jax-0.10.2.dist-info/METADATA");
  file("v/jax_cuda13_plugin-0.10.2.dist-info/METADATA");
  file("w/jax-0.10.2.dist-info/METADATA");
  file("usr/lib/python3/dist-packages/torch-1.13.1.egg-info/PKG-INFO");
  file("usr/lib/python3/dist-packages/torch/version.py", "__version__ = '1.13.1'\ncuda = None\n");
  const ImageTree image = tree();
  const std::vector<FrameworkBuild> expected = {
      {"jax", "0.10.2", "13"},          {"jax", "0.10.2", "cpu"},
      {"tensorflow", "2.21.0", "12.5"}, {"tensorflow", "2.21.0", "cpu"},
      {"torch", "1.13.1", "cpu"},       {"torch", "2.7.1+cu126", "12.6"}};
  EXPECT_EQ(frameworks_in(image, python_packages(image)), expected);
}

TEST_F(Software, VersionsComeFromPackagesAndNames) {
  library("usr/local/cuda-12.4/lib64/libcudart.so.12.4.127");
  link("usr/local/cuda-12.4/lib64/libcudart.so.12", "libcudart.so.12.4.127");
  link("usr/local/cuda-12.4/lib64/libcudart.so", "libcudart.so.12");
  library("v/nvidia/cu13/lib/libcudart.so.13");
  file("v/nvidia_cuda_runtime-13.2.75.dist-info/METADATA");
  file("v/nvidia_cuda_runtime_cu12-12.8.90.dist-info/METADATA");
  library("v/nvidia/cuda_runtime/lib/libcudart.so.12");
  library("usr/lib/libcudart_static_like.so.1");
  const ImageTree image = tree();
  const std::vector<FoundLibrary> expected = {
      {"/usr/local/cuda-12.4/lib64/libcudart.so.12.4.127", "12.4.127"},
      {"/v/nvidia/cu13/lib/libcudart.so.13", "13.2.75"},
      {"/v/nvidia/cuda_runtime/lib/libcudart.so.12", "12.8.90"}};
  EXPECT_EQ(libraries_in(image, python_packages(image), "libcudart", "nvidia-cuda-runtime"),
            expected);
}

TEST_F(Software, ProcessorNeeds) {
  file("v/tensorflow-2.21.0.dist-info/METADATA");
  file("v/tensorflow-1.5.0.dist-info/METADATA");
  file("v/numpy-2.4.6.dist-info/METADATA");
  file("w/numpy-2.3.5.dist-info/METADATA");
  file("usr/lib/python3/dist-packages/numpy-2.4.4.dist-info/METADATA");
  const ImageTree image = tree();
  const std::vector<CpuNeed> expected = {
      {"numpy 2.4.6", {"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"}},
      {"tensorflow 2.21.0", {"avx"}}};
  EXPECT_EQ(cpu_needs_of(image, 62, python_packages(image)), expected);
  EXPECT_EQ(cpu_needs_of(image, 183, python_packages(image)), std::vector<CpuNeed>{});
}

TEST(Versions, AreComparedAsNumbers) {
  EXPECT_TRUE(is_older_version("2.9", "2.10"));
  EXPECT_FALSE(is_older_version("2.10", "2.9.1"));
  EXPECT_TRUE(is_older_version("2.9", "2.9.1"));
  EXPECT_FALSE(is_older_version("2.9", "2.9"));
}

TEST(NvidiaLibraries, ByName) {
  EXPECT_TRUE(is_nvidia_library("/usr/local/cuda/lib64/libcublasLt.so.12"));
  EXPECT_FALSE(is_nvidia_library("/v/torch/lib/libtorch_cuda.so"));
  EXPECT_TRUE(is_from_driver("libcuda.so.1"));
  EXPECT_FALSE(is_from_driver("libcudart.so.13"));
}

}  // namespace
}  // namespace mlenv
