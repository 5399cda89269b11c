#include "recipes/compat/framework_cuda.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

TEST(FrameworkCuda, ReleasesWithBuildsForIt) {
  struct Case {
    const char* framework;
    const char* specifiers;
    const char* cuda;
    bool has;
  };
  for (const Case& one :
       {Case{"pytorch", "", "12", true}, Case{"pytorch", "==1.13.1", "12", false},
        Case{"pytorch", "==1.13.1", "11", true}, Case{"pytorch", "==1.12.1", "10", true},
        Case{"pytorch", ">=1.7,<2", "12", false}, Case{"pytorch", "~=2.0", "12", true},
        Case{"pytorch", "~=2.0.1", "12", false}, Case{"pytorch", ">=2.8", "11", false},
        Case{"pytorch", ">=3", "12", true}, Case{"pytorch", ">=2.9", "13", true},
        Case{"tensorflow", "<2.15", "12", false}, Case{"tensorflow", "==2.14.0", "11", true},
        Case{"jax", ">=0.5", "11", false}, Case{"jax", "", "13", true},
        Case{"other", "==1", "12", true}}) {
    EXPECT_EQ(has_builds_for_cuda(one.framework, one.specifiers, one.cuda), one.has)
        << one.framework << one.specifiers << ' ' << one.cuda;
  }
}

TEST(FrameworkCuda, OfTensorflow) {
  EXPECT_EQ(cuda_of_tensorflow(""), "12");
  EXPECT_EQ(cuda_of_tensorflow(">=2.10"), "12");
  EXPECT_EQ(cuda_of_tensorflow("==2.12.0"), "11");
  EXPECT_EQ(cuda_of_tensorflow("==1.15"), "");
}

}  // namespace
}  // namespace mlenv
