#include "recipes/recipe_write.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <future>

#include "base/error.hpp"
#include "recipes/lock.hpp"

namespace mlenv {
namespace {

constexpr const char* kText = "name: a\nbase: debian:bookworm\npackages: [idna]\n";

class RecipeWrite : public testing::Test {
 protected:
  void SetUp() override {
    write_file(path(), kText);
    ASSERT_EQ(::chmod(path().c_str(), 0640), 0);
    write_file(lock(), "the first lock\n");
  }
  fs::path path() const { return folder_.path() / "recipe.yaml"; }
  fs::path lock() const { return lock_path(path()); }
  static Recipe edited(const Recipe& before, const std::string& package) {
    return parse_recipe("name: a\nbase: debian:bookworm\npackages: [idna, " + package + "]\n",
                        before.path);
  }
  /// As a command does it that read both files when they were the first.
  std::string write(const std::string& package) const {
    const Recipe before = parse_recipe(kText, path());
    return write(before, edited(before, package),
                 {"the first lock\n", "lock of " + package + "\n"});
  }
  static std::string write(const Recipe& before, const Recipe& after, const LockTexts& texts) {
    try {
      write_recipe(before, after, texts);
      return "done";
    } catch (const Error& error) {
      return std::string(error.code());
    }
  }
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(RecipeWrite, WritesBoth) {
  EXPECT_EQ(write("six"), "done");
  EXPECT_NE(read_file(path()).find("[idna, six]"), std::string::npos);
  EXPECT_EQ(read_file(lock()), "lock of six\n");
  struct stat status {};
  ASSERT_EQ(::stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(RecipeWrite, TheSecondOfTwoLeavesTheFirstAlone) {
  EXPECT_EQ(write("six"), "done");
  EXPECT_EQ(write("attrs"), "recipe-changed");
  EXPECT_NE(read_file(path()).find("[idna, six]"), std::string::npos);
  EXPECT_EQ(read_file(lock()), "lock of six\n");
}

TEST_F(RecipeWrite, OfManyAtOnceOneWins) {
  std::vector<std::future<std::string>> all;
  for (const char* package : {"six", "attrs", "numpy", "certifi", "pyyaml", "jinja2"}) {
    all.push_back(std::async(std::launch::async, [this, package] { return write(package); }));
  }
  int done = 0;
  for (std::future<std::string>& one : all) {
    const std::string code = one.get();
    EXPECT_TRUE(code == "done" || code == "recipe-changed") << code;
    done += code == "done" ? 1 : 0;
  }
  EXPECT_EQ(done, 1);
  const std::string package = read_file(lock()).substr(std::string("lock of ").size());
  EXPECT_NE(read_file(path()).find(package.substr(0, package.size() - 1)), std::string::npos);
  EXPECT_EQ(list_folder(folder_.path()).size(), 2U);  // nothing lies beside them
}

TEST_F(RecipeWrite, ALockThatSomebodyElseMadeIsKept) {
  write_file(lock(), "upgraded meanwhile\n");
  EXPECT_EQ(write("six"), "recipe-changed");
  EXPECT_EQ(read_file(path()), kText);
  EXPECT_EQ(read_file(lock()), "upgraded meanwhile\n");
}

TEST_F(RecipeWrite, ARecipeThatIsGoneIsAnError) {
  fs::remove(path());
  EXPECT_EQ(write("six"), "absent");
  EXPECT_EQ(read_file(lock()), "the first lock\n");
}

TEST_F(RecipeWrite, AFirstLockIsWritten) {
  fs::remove(lock());
  const Recipe before = parse_recipe(kText, path());
  EXPECT_EQ(write(before, edited(before, "six"), {std::nullopt, "new\n"}), "done");
  EXPECT_EQ(read_file(lock()), "new\n");
}

}  // namespace
}  // namespace mlenv
