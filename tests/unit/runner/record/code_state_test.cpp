#include "runner/record/code_state.hpp"

#include <gtest/gtest.h>

#include "base/process.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class CodeStateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("git")) GTEST_SKIP() << "git is not installed";
    git({"init", "-q", "-b", "main"});
    write_file(folder() / "train.py", "print(1)\n");
    write_file(folder() / ".gitignore", "*.ckpt\n");
  }
  const fs::path& folder() const { return folder_.path(); }
  void git(const Strings& words) const {
    Command command{Purpose{"test"}};
    command.argv = {"git", "-C", folder().string(), "-c", "user.name=a", "-c", "user.email=a@b"};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    ASSERT_EQ(run_captured(command, std::chrono::seconds(30)).exit.code, 0);
  }
  void commit() const {
    git({"add", "-A"});
    git({"commit", "-q", "-m", "x"});
  }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(CodeStateTest, AnUntouchedCheckout) {
  commit();
  const CodeState code = code_state(folder());
  ASSERT_TRUE(code.commit) << code.commit.source;
  EXPECT_EQ(code.commit->size(), 40U);
  EXPECT_EQ(code.branch.value, "main");
  EXPECT_EQ(code.changed.value, Strings{});
  // sha256 of nothing
  EXPECT_EQ(code.changed_digest.value,
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(CodeStateTest, FilesBetweenTwoCommits) {
  commit();
  const std::string first = *code_state(folder()).commit;
  write_file(folder() / "train.py", "print(2)\n");
  write_file(folder() / "new file.py", "x\n");
  commit();
  const std::string second = *code_state(folder()).commit;
  EXPECT_EQ(files_between(folder(), first, second).value, (Strings{"new file.py", "train.py"}));
  EXPECT_EQ(files_between(folder(), first, first).value, Strings{});
  // Of a record of somebody else: commits that are not here, and words that would be options.
  EXPECT_FALSE(files_between(folder(), first, std::string(40, 'a')));
  EXPECT_FALSE(files_between(folder(), first, "--output=/tmp/x"));
  EXPECT_FALSE(files_between(folder() / "gone", first, second));
}

TEST_F(CodeStateTest, ChangesAreNamedAndTellApart) {
  commit();
  write_file(folder() / "train.py", "print(2)\n");
  write_file(folder() / "new file.py", "x\n");
  write_file(folder() / "model.ckpt", "ignored");
  const CodeState two = code_state(folder());
  EXPECT_EQ(two.changed.value, (Strings{"new file.py", "train.py"}));
  ASSERT_TRUE(two.changed_digest) << two.changed_digest.source;
  EXPECT_EQ(code_state(folder()), two);
  write_file(folder() / "train.py", "print(3)\n");
  const CodeState three = code_state(folder());
  EXPECT_EQ(three.changed, two.changed);
  EXPECT_NE(three.changed_digest, two.changed_digest);
  fs::remove(folder() / "train.py");
  const CodeState gone = code_state(folder());
  EXPECT_EQ(gone.changed, two.changed);
  EXPECT_NE(gone.changed_digest, three.changed_digest);
}

TEST_F(CodeStateTest, TheProjectAloneCounts) {
  fs::create_directory(folder() / "a");
  fs::create_directory(folder() / "b");
  write_file(folder() / "a/x.py", "1\n");
  write_file(folder() / "b/y.py", "1\n");
  commit();
  write_file(folder() / "b/y.py", "2\n");
  EXPECT_EQ(code_state(folder() / "a").changed.value, Strings{});
  EXPECT_EQ(code_state(folder() / "b").changed.value, Strings{"b/y.py"});
}

TEST_F(CodeStateTest, WhatIsLeftOutDoesNotCount) {
  commit();
  const CodeState clean = code_state(folder());
  make_folders(folder() / "out");
  write_file(folder() / "out/model", "x");
  EXPECT_NE(code_state(folder()), clean);
  EXPECT_EQ(code_state(folder(), {"out"}), clean);
  EXPECT_EQ(code_state(folder(), {"o*"}), code_state(folder()));  // a name, no pattern
}

TEST_F(CodeStateTest, ACommitIsWrittenElsewhere) {
  make_folders(folder() / "project");
  write_file(folder() / "project/job.py", "first");
  commit();
  const std::string first = code_state(folder()).commit.value.value_or("");
  write_file(folder() / "project/job.py", "second");
  commit();
  write_file(folder() / "project/job.py", "third");
  const CodeState before = code_state(folder());
  const TemporaryFolder target{temporary_root()};
  make_folders(target.path() / "code");
  const fs::path code = export_commit(folder() / "project", first, target.path() / "code");
  EXPECT_EQ(read_file(code / "job.py"), "first");
  EXPECT_EQ(list_folder(code).size(), 1U);
  EXPECT_EQ(list_folder(target.path() / "code").size(), 1U);
  EXPECT_EQ(code_state(folder()), before);
  EXPECT_EQ(read_file(folder() / "project/job.py"), "third");
  const std::string absent(40, 'a');
  EXPECT_EQ(code_of([&] { (void)export_commit(folder(), absent, target.path() / "code"); }),
            "no-commit");
}

TEST_F(CodeStateTest, ARepositoryWithoutCommit) {
  const CodeState code = code_state(folder());
  EXPECT_FALSE(code.commit);
  EXPECT_EQ(code.commit.source, "the repository has no commit");
  EXPECT_EQ(code.changed.value, (Strings{".gitignore", "train.py"}));
}

TEST_F(CodeStateTest, NothingItNamesIsRun) {
  write_file(folder() / ".gitattributes", "*.py filter=evil\n");
  commit();
  const fs::path proof = folder() / "ran.ckpt";
  const fs::path program = folder() / ".git/run.sh";
  write_file(program, "#!/bin/sh\ntouch '" + proof.string() + "'\ncat\n");
  fs::permissions(program, fs::perms::owner_all);
  for (const char* name :
       {"core.fsmonitor", "diff.external", "filter.evil.clean", "filter.evil.process"}) {
    git({"config", name, program.string()});
  }
  git({"config", "filter.evil.required", "true"});
  write_file(folder() / "train.py", "print(2)\n");
  fs::remove(proof);
  EXPECT_EQ(code_state(folder()).changed.value, Strings{"train.py"});
  EXPECT_FALSE(fs::exists(proof));
}

TEST_F(CodeStateTest, NothingIsFetched) {
  commit();
  const fs::path proof = folder() / "ran.ckpt";
  git({"config", "extensions.partialClone", "origin"});
  git({"config", "remote.origin.promisor", "true"});
  git({"config", "remote.origin.url", "ext::sh -c touch% " + proof.string()});
  git({"config", "protocol.ext.allow", "always"});
  // Its trees are gone: git would ask the remote for them.
  for (const fs::path& objects : list_folder(folder() / ".git/objects")) {
    if (objects.filename().string().size() == 2) remove_tree(objects);
  }
  (void)code_state(folder());
  EXPECT_FALSE(fs::exists(proof));
}

TEST(CodeState, OutsideARepositoryIsUnknown) {
  const TemporaryFolder folder{temporary_root()};
  const CodeState code = code_state(folder.path());
  EXPECT_FALSE(code.commit);
  EXPECT_FALSE(code.changed);
  EXPECT_FALSE(code.changed_digest);
  EXPECT_FALSE(code.commit.source.empty());
}

}  // namespace
}  // namespace mlenv
