// Repositories, with the real git.
#include "recipes/resolve/git_source.hpp"

#include <gtest/gtest.h>
#include <algorithm>
#include <atomic>
#include <thread>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "recipes/resolve/git_program.hpp"

namespace mlenv {
namespace {

class GitSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    git({"init", "--quiet", "--initial-branch=main"});
    put("a.py", "1\r\n");
    put("python/run.sh", "#!/bin/sh\n");
    fs::permissions(repository() / "python/run.sh", fs::perms::owner_all);
    fs::create_symlink("../a.py", repository() / "python/link");
    put(".gitattributes", "*.py text eol=lf\n*.bin filter=lfs export-ignore\n");
    put("x.bin", "version https://git-lfs.github.com/spec/v1\n");
    first_ = commit();
  }
  fs::path repository() const { return folder_.path() / "x"; }
  std::string url() const { return "file://" + repository().string(); }
  fs::path cache() const { return folder_.path() / "cache"; }

  void put(const std::string& path, const std::string& text) const {
    fs::create_directories((repository() / path).parent_path());
    write_file(repository() / path, text, /*durable=*/false);
  }
  std::string git(std::vector<std::string> words) const {
    fs::create_directories(repository());
    words.insert(words.begin(), {"git", "-C", repository().string(), "-c", "user.name=a", "-c",
                                 "user.email=a@b.example", "-c", "filter.lfs.clean=cat"});
    Command command{Purpose{"test"}};
    command.argv = std::move(words);
    const Captured said = run_captured(command, std::chrono::seconds(30));
    EXPECT_EQ(said.exit.code, 0) << said.err;
    return std::string(trim(said.out));
  }
  std::string commit() const {
    git({"add", "-A", "--renormalize", "."});
    git({"add", "-A"});
    git({"commit", "--quiet", "--allow-empty", "-m", "m"});
    return git({"rev-parse", "HEAD"});
  }
  std::string find(const std::string& reference) {
    return find_git_commit(url(), reference, progress_);
  }
  SourceTree tree(const std::string& name) {
    return provide_git_tree(url(), name, std::nullopt, cache(), progress_);
  }
  std::string refused(const std::function<void()>& work) {
    try {
      work();
      return "nothing";
    } catch (const Error& error) {
      return error.code() + ": " + error.frames().front();
    }
  }

  TemporaryFolder folder_{temporary_root()};
  QuietProgress progress_;
  std::string first_;
};

TEST_F(GitSourceTest, ReferencesMeanCommits) {
  git({"tag", "-a", "-m", "m", "v1"});
  git({"tag", "main"});
  put("b.py", "2");
  const std::string second = commit();
  git({"branch", "feature/a", second});
  EXPECT_EQ(find(""), second);
  EXPECT_EQ(find("main"), second);  // the branch, not the tag
  EXPECT_EQ(find("feature/a"), second);
  EXPECT_EQ(find("v1"), first_);  // what an annotated tag is of
  EXPECT_EQ(find("refs/tags/main"), first_);
  EXPECT_EQ(find(first_.substr(0, 8)), first_);
  EXPECT_EQ(find(std::string(40, 'a')), std::string(40, 'a'));
  const std::string said = refused([&] { find("fetaure/a"); });
  EXPECT_EQ(said, "no-commit: `" + url() +
                      "` has no branch, tag or commit `fetaure/a`; did you "
                      "mean `feature/a`?");
}

TEST_F(GitSourceTest, FilesAreThoseThatTheCommitStores) {
  const SourceTree found = tree(first_);
  std::string paths;
  for (const SourceFile& file : found.files) paths += file.path + ' ';
  EXPECT_EQ(paths, ".gitattributes a.py python/link python/run.sh x.bin ");
  EXPECT_EQ(read_file(found.folder / "a.py"), "1\n");  // as git stored it
  EXPECT_EQ(read_file(found.folder / "x.bin"), "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_EQ(found.files[2].kind, SourceFile::Kind::link);
  EXPECT_EQ(found.files[3].kind, SourceFile::Kind::executable);
  // No time, user or umask is in it.
  EXPECT_EQ(found.digest().hex(),
            "2796291b43b73ca4da20e3e70e86d3e3f4a524d44eeae44e71c7f3b87264edec");
}

TEST_F(GitSourceTest, TheCacheAnswersAndIsMendedWhereItIsWrong) {
  const SourceTree found = tree(first_);
  fs::rename(repository(), folder_.path() / "gone");
  EXPECT_EQ(tree(first_).digest(), found.digest());
  EXPECT_EQ(list_folder(cache() / "git").size(), 3U);  // the tree, what it is, and its lock
  write_file(found.folder / "a.py", "other", /*durable=*/false);
  const auto again = [&] {
    return provide_git_tree(url(), first_, found.digest(), cache(), progress_).digest();
  };
  EXPECT_TRUE(refused(again).starts_with("git-failed: `file:///")) << refused(again);
  fs::rename(folder_.path() / "gone", repository());
  EXPECT_EQ(again(), found.digest());
  write_file(found.folder / "a.py", "torn", /*durable=*/false);
  EXPECT_EQ(tree(first_).digest(), found.digest());
  const std::string absent(40, 'a');
  EXPECT_EQ(refused([&] { tree(absent); }), "no-commit: `" + url() + "` has no commit " + absent);
}

TEST_F(GitSourceTest, ManyThatMendATreeAtOnceAllHaveAWholeOne) {
  const SourceTree found = tree(first_);
  const Digest whole = found.digest();
  for (int round = 0; round < 5; ++round) {
    write_file(found.folder / "a.py", fmt::format("torn {}", round), /*durable=*/false);
    std::atomic<int> good = 0;
    const auto take = [&](int number) {
      try {
        const std::optional<Digest> promised =
            number % 2 == 0 ? std::optional(whole) : std::nullopt;
        const SourceTree mine = provide_git_tree(url(), first_, promised, cache(), progress_);
        copy_source_tree(mine, folder_.path() / fmt::format("copy-{}-{}", round, number));
        if (mine.digest() == whole) ++good;
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(take, i);
    for (std::thread& one : threads) one.join();
    EXPECT_EQ(good, 4);
  }
}

TEST_F(GitSourceTest, ACommitThatNoBranchHasAnyMore) {
  put("b.py", "2");
  const std::string second = commit();
  git({"reset", "--quiet", "--hard", first_});
  EXPECT_EQ(tree(second).files.size(), 6U);
}

TEST_F(GitSourceTest, WhatTagsSay) {
  const auto said = [&](const std::string& name) {
    return describe_git_commit(url(), name, progress_);
  };
  EXPECT_EQ(said(first_), "");
  git({"tag", "release"});
  git({"tag", "v1.2"});
  put("b.py", "2");
  const std::string second = commit();
  EXPECT_EQ(said(first_), "v1.2-0-g" + first_.substr(0, 7));
  EXPECT_EQ(said(second), "v1.2-1-g" + second.substr(0, 7));
}

TEST_F(GitSourceTest, SubmodulesAreRefused) {
  git({"-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url(), "inner"});
  const std::string second = commit();
  EXPECT_EQ(refused([&] { tree(second); }),
            "bad-source: `" + url() + "` has the submodule `inner`, which is another repository");
}

TEST(GitProgram, NeverAsksAndNamesNoOtherRepository) {
  const auto kept = git_environment({"HOME=/h", "GIT_DIR=/x", "SSH_ASKPASS=/a", "LC_ALL=de",
                                     "GIT_ASKPASS=/ci", "GIT_CONFIG_GLOBAL=/g"},
                                    true);
  const auto holds = [&](const char* text) {
    return std::find(kept.begin(), kept.end(), text) != kept.end();
  };
  EXPECT_TRUE(holds("HOME=/h") && holds("GIT_ASKPASS=/ci") && holds("GIT_CONFIG_GLOBAL=/g"));
  EXPECT_FALSE(holds("GIT_DIR=/x") || holds("SSH_ASKPASS=/a") || holds("LC_ALL=de"));
  EXPECT_TRUE(holds("GIT_TERMINAL_PROMPT=0") && holds("GIT_SSH_COMMAND=ssh -o BatchMode=yes"));
  const auto own = git_environment({"GIT_SSH_COMMAND=mine"}, true);
  EXPECT_EQ(std::count(own.begin(), own.end(), "GIT_SSH_COMMAND=ssh -o BatchMode=yes"), 0);
}

}  // namespace
}  // namespace mlenv
