// What decides a build, and so what is found again.
#include "builder/build_memory.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

class BuildMemoryTest : public testing::Test {
 protected:
  BuildMemoryTest() {
    base_.epoch = 1;
    base_.python = "3.11.2";
    base_.debs = {{"libc6", "2.36", "amd64", "pool/c", 1, Digest::of("libc6")}};
    tools_ = {{"setuptools", "65", "setuptools-65-py3-none-any.whl", 1, Digest::of("65"), false}};
  }
  BuildMemory memory(const std::string& hooks = "hooks") {
    return BuildMemory(store_, source_, base_, settings_, hooks);
  }
  bool is_known() { return memory().wheel(tools_).has_value(); }
  void keep() {
    const Digest digest = store_.put("wheel");
    memory().keep_wheel(tools_, {"x", "1", "x-1-py3-none-any.whl", 5, digest, false});
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  LockedSource source_{"x", "1", "x-1.zip", 3, Digest::of("source"), {}};
  Lock base_;
  BuildSettings settings_;
  std::vector<LockedWheel> tools_;
};

TEST_F(BuildMemoryTest, FindsTheWheelOfTheSameBuild) {
  EXPECT_FALSE(is_known());
  keep();
  const auto found = memory().wheel(tools_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->file, "x-1-py3-none-any.whl");
  EXPECT_EQ(found->digest, Digest::of("wheel"));
}

TEST_F(BuildMemoryTest, OfWhateverDecidesItAnotherOneIsBuilt) {
  keep();
  const auto changed = [&](auto change, auto back) {
    change();
    const bool known = is_known();
    back();
    return !known;
  };
  const LockedSource source = source_;
  const Lock base = base_;
  const BuildSettings settings = settings_;
  const std::vector<LockedWheel> tools = tools_;
  const auto back = [&] {
    source_ = source;
    base_ = base;
    settings_ = settings;
    tools_ = tools;
  };
  EXPECT_TRUE(changed([&] { source_.digest = Digest::of("other"); }, back));
  EXPECT_TRUE(changed([&] { source_.subdirectory = "python"; }, back));
  EXPECT_TRUE(changed([&] { source_.describe = "v1-2-g0123456"; }, back));
  EXPECT_TRUE(changed([&] { base_.debs[0].digest = Digest::of("libc6 2"); }, back));
  EXPECT_TRUE(changed([&] { base_.python = "3.11.3"; }, back));
  EXPECT_TRUE(changed([&] { base_.epoch = 2; }, back));
  EXPECT_TRUE(changed([&] { base_.platform = "linux/arm64"; }, back));
  EXPECT_TRUE(changed([&] { settings_.env["CC"] = "clang"; }, back));
  EXPECT_TRUE(changed([&] { settings_.config_settings["a"] = {"b"}; }, back));
  EXPECT_TRUE(changed([&] { settings_.network = true; }, back));
  EXPECT_TRUE(changed([&] { tools_[0].digest = Digest::of("66"); }, back));
  EXPECT_FALSE(memory("others").wheel(tools_));
  // Which of them are there says what the recipe wants of them.
  EXPECT_FALSE(changed([&] { settings_.constraints = {"setuptools<66"}; }, back));
  EXPECT_TRUE(is_known());
}

TEST_F(BuildMemoryTest, RemembersWhatSourceAndBuildAskFor) {
  memory().keep_stated({{"setuptools"}, 7});
  memory().keep_asked(tools_, {"wheel"});
  EXPECT_EQ(memory().stated()->requirements, (std::vector<std::string>{"setuptools"}));
  EXPECT_EQ(memory().stated()->size_bytes, 7U);
  EXPECT_EQ(memory().asked(tools_), (std::vector<std::string>{"wheel"}));
  EXPECT_FALSE(memory().asked({}));
}

/// `mlenv gc` takes a wheel that no image consists of, and what leads to it with it.
TEST_F(BuildMemoryTest, GarbageIsBuiltAgain) {
  keep();
  store_.need_only({});
  (void)store_.collect_garbage({});
  EXPECT_FALSE(is_known());
}

}  // namespace
}  // namespace mlenv
