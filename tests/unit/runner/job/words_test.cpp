#include "runner/job/words.hpp"

#include <gtest/gtest.h>

namespace mlenv::job {
namespace {

TEST(JobWordsTest, NamesThereAndBack) {
  for (const std::string_view name : strategy_names()) EXPECT_EQ(name_of(*strategy_of(name)), name);
  for (const std::string_view name : framework_names()) {
    EXPECT_EQ(name_of(*framework_of(name)), name);
  }
  EXPECT_EQ(framework_of("pytorch"), Framework::torch);
  EXPECT_FALSE(strategy_of("parameter_server"));
  EXPECT_FALSE(framework_of(""));
}

TEST(JobWordsTest, HowManyNodes) {
  EXPECT_EQ(node_count_of("4"), (NodeCount{4, 4}));
  EXPECT_EQ(node_count_of("2:4"), (NodeCount{2, 4}));
  EXPECT_EQ(text_of({2, 4}), "2:4");
  EXPECT_EQ(text_of({3, 3}), "3");
  EXPECT_EQ(node_count_of("65535"), (NodeCount{65535, 65535}));
  for (const char* wrong :
       {"", "0", "65536", "4:2", "2:", ":2", "2:3:4", "-1", "0:2", "1 ", "+1"}) {
    EXPECT_FALSE(node_count_of(wrong)) << wrong;
  }
}

TEST(JobWordsTest, FrameworkOfAnImage) {
  ImageFacts image;
  EXPECT_EQ(framework_of(image), Framework::none);  // not known
  image.frameworks = known<std::vector<FrameworkBuild>>({}, "files");
  EXPECT_EQ(framework_of(image), Framework::none);
  image.frameworks.value = {{"tensorflow", "2.21.0", "cpu"}};
  EXPECT_EQ(framework_of(image), Framework::tensorflow);
  image.frameworks.value = {{"jax", "0.10.2", "cpu"}, {"tensorflow", "2.21.0", "cpu"}};
  EXPECT_EQ(framework_of(image), Framework::jax);
  image.frameworks.value = {{"jax", "0.10.2", "cpu"}, {"torch", "2.15.0", "13.2"}};
  EXPECT_EQ(framework_of(image), Framework::torch);
}

}  // namespace
}  // namespace mlenv::job
