#include "base/tree_walk.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include "base/error.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class TreeWalkTest : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }

  static void add_to(int folder, const std::string& name) {
    const Fd file{::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    EXPECT_TRUE(file);
  }

  void make_deep(const std::string& name, int levels, const std::string& part = "d") const {
    make_deep_tree(at(name), levels, part);
  }

  static Strings met(const fs::path& top, bool sorted = true) {
    Strings words;
    TreeWalk walk;
    walk.visit = [&](const TreeEntry& entry) {
      words.emplace_back(entry.path);
      return true;
    };
    walk.leave = [&](const TreeEntry& entry) { words.push_back("< " + std::string(entry.path)); };
    walk.sorted = sorted;
    walk_tree(top, walk);
    return words;
  }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(TreeWalkTest, MeetsFoldersBeforeWhatTheyHoldAndLeavesThemAfter) {
  make_folders(at("t/b/c"));
  make_folders(at("t/a"));
  write_file(at("t/b/c/x"), "");
  write_file(at("t/b-"), "");
  fs::create_directory_symlink(at("t/b"), at("t/link"));
  EXPECT_EQ(met(at("t")), (Strings{"a", "< a", "b", "b/c", "b/c/x", "< b/c", "< b", "b-", "link"}));
  EXPECT_EQ(met(at("none")), Strings{});
  EXPECT_EQ(met(at("t/b-")), Strings{});
}

TEST_F(TreeWalkTest, AFolderCanBePassedBy) {
  make_folders(at("t/a/b"));
  Strings words;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    words.emplace_back(entry.path);
    return false;
  };
  walk_tree(at("t"), walk);
  EXPECT_EQ(words, Strings{"a"});
}

TEST_F(TreeWalkTest, SaysHowDeepAndWhatIsGone) {
  make_folders(at("t/a/b"));
  write_file(at("t/a/b/c"), "");
  Strings words;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    words.push_back(std::to_string(entry.depth) + " " + entry.name);
    if (entry.name == "b") remove_tree(at("t/a/b"));
    return true;
  };
  walk.leave = [&](const TreeEntry& entry) {
    words.push_back("< " + std::to_string(entry.depth) + " " + entry.name);
  };
  walk.gone = [&](std::string_view path) { words.push_back("gone " + std::string(path)); };
  walk.enter_mounts = true;
  walk_tree(at("t"), walk);
  EXPECT_EQ(words, (Strings{"0 a", "1 b", "gone a/b", "< 0 a"}));
  words.clear();
  walk_tree(at("none"), walk);
  EXPECT_EQ(words, Strings{"gone "});
}

TEST_F(TreeWalkTest, GoesDeeperThanAnyPathAndThanDescriptorsReach) {
  constexpr int kLevels = 300;
  make_deep("t", kLevels, "sixteen letters.");
  const FewDescriptors few;
  for (const bool sorted : {true, false}) {
    const Strings words = met(at("t"), sorted);
    EXPECT_EQ(words.size(), 3U * kLevels);
    const auto left = std::count_if(words.begin(), words.end(),
                                    [](const std::string& word) { return word.starts_with('<'); });
    EXPECT_EQ(left, kLevels);
  }
  remove_tree(at("t"));
  EXPECT_FALSE(fs::exists(at("t")));
}

TEST_F(TreeWalkTest, GoesOnWhereItWasOnceALevelWasClosed) {
  // Beside each deep chain others, so that closed listings go on.
  for (const char* name : {"t/a", "t/b", "t/c"}) make_deep(name, 100, "z");
  Strings sorted = met(at("t"), true);
  Strings unsorted = met(at("t"), false);
  std::sort(sorted.begin(), sorted.end());
  std::sort(unsorted.begin(), unsorted.end());
  EXPECT_EQ(sorted, unsorted);
  EXPECT_EQ(sorted.size(), 3U * (100U * 3U + 2U));
}

TEST_F(TreeWalkTest, NamesOfAnyLength) {
  make_deep("t", 40, std::string(NAME_MAX, 'x'));
  EXPECT_EQ(met(at("t")).size(), 120U);
  remove_tree(at("t"));
  EXPECT_FALSE(fs::exists(at("t")));
}

TEST_F(TreeWalkTest, WhoeverMovesAFolderEndsTheWalk) {
  make_deep("t/in", 40);
  make_folders(at("elsewhere"));
  write_file(at("elsewhere/keep"), "");
  TreeWalk walk;
  Strings outside;
  walk.visit = [&](const TreeEntry& entry) {
    if (entry.name == "keep") outside.emplace_back(entry.path);
    if (std::count(entry.path.begin(), entry.path.end(), '/') == 30) {
      std::error_code ignored;  // done the first time
      fs::rename(at("t/in/d/d"), at("elsewhere/d"), ignored);
    }
    return true;
  };
  EXPECT_EQ(code_of([&] { walk_tree(at("t"), walk); }), "file-changed");
  EXPECT_EQ(outside, Strings{});
}

TEST_F(TreeWalkTest, WhatCannotBeReadIsTold) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  make_folders(at("t/shut"));
  fs::permissions(at("t/shut"), fs::perms{0});
  EXPECT_EQ(code_of([&] { (void)met(at("t")); }), "permission");
  Strings told;
  TreeWalk walk;
  walk.visit = [](const TreeEntry&) { return true; };
  walk.unreadable = [&](std::string_view path, int error) {
    told.push_back(std::string(path) + (error == EACCES ? "" : "?"));
  };
  walk_tree(at("t"), walk);
  EXPECT_EQ(told, Strings{"shut"});
}

TEST_F(TreeWalkTest, ARemovalTakesAllButWhatItCannot) {
  make_folders(at("t/a/b"));
  make_folders(at("t/shut/in"));
  write_file(at("t/shut/in/file"), "");
  fs::permissions(at("t/shut/in"), fs::perms{0});
  fs::permissions(at("t/shut"), fs::perms{0});
  write_file(at("keep"), "");
  fs::create_symlink(at("keep"), at("t/a/link"));
  remove_tree(at("t"));
  EXPECT_FALSE(fs::exists(at("t")));
  EXPECT_TRUE(fs::exists(at("keep")));
}

TEST_F(TreeWalkTest, ManyEntriesInOneFolder) {
  make_folders(at("t"));
  const Fd folder = open_file(at("t"), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 5000; ++i) add_to(folder.get(), std::to_string(i));
  EXPECT_EQ(met(at("t"), false).size(), 5000U);
  remove_tree(at("t"));
  EXPECT_FALSE(fs::exists(at("t")));
}

TEST_F(TreeWalkTest, LongPathsAreShortenedForPeople) {
  EXPECT_EQ(short_path("/a", "b/c"), "/a/b/c");
  EXPECT_EQ(short_path("/a", ""), "/a");
  EXPECT_EQ(short_path({}, "b"), "b");
  const std::string shortened = short_path("/begin", std::string(5000, 'x') + "/end");
  EXPECT_LT(shortened.size(), 400U);
  EXPECT_TRUE(shortened.starts_with("/begin/xx"));
  EXPECT_TRUE(shortened.ends_with("x/end"));
}

}  // namespace
}  // namespace mlenv
