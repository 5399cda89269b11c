#include "recipes/compat/old_tensorflow.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(OldTensorflow, BeforeThereWasOneForTheProcessor) {
  for (const char* text : {"==1.12.0", "<2", "==1.15.2", "==2.0.*", ">=1.8.0,<2.0"}) {
    EXPECT_TRUE(is_before_tensorflow_cpu(text)) << text;
  }
  for (const char* text : {"", "==2.1.0", ">=1.4.0", "<2.2", "~=2.0"}) {
    EXPECT_FALSE(is_before_tensorflow_cpu(text)) << text;
  }
}

TEST(OldTensorflow, IsOneBefore214) {
  for (const std::string_view one : {"==2.12.1", "<2.13", "==2.9.*", "~=2.8,<2.14", "<=2.13.1"}) {
    EXPECT_TRUE(wants_old_tensorflow(one)) << one;
  }
  for (const std::string_view one :
       {"", ">=2.10", "==2.14.0", "==2.16.*", "==2.3.*", "==1.15.5", ">=2.12,<2.17", "==2.21.0"}) {
    EXPECT_FALSE(wants_old_tensorflow(one)) << one;
  }
}

TEST(OldTensorflow, LibrariesLieWhereTheirPackagesPutThem) {
  EXPECT_EQ(nvidia_library_folder("nvidia-cuda-runtime-cu11"), "nvidia/cuda_runtime/lib");
  EXPECT_EQ(nvidia_library_folder("nvidia-cudnn-cu11"), "nvidia/cudnn/lib");
  EXPECT_EQ(nvidia_library_folder("nvidia-cublas-cu12"), "");
  EXPECT_EQ(nvidia_library_folder("numpy"), "");
}

}  // namespace
}  // namespace mlenv
