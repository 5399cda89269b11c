#include "runner/job/code.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <gtest/gtest.h>

#include "base/process.hpp"
#include "base/text.hpp"
#include "images/store.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv::job {
namespace {

/// Standard output of a program that must succeed.
std::string output_of(Strings argv) {
  Command command{Purpose{"test"}};
  command.argv = std::move(argv);
  const Captured ran = run_captured(command, std::chrono::seconds(30));
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  return ran.out;
}

Strings sorted_parts(const std::string& text, char separator) {
  Strings parts;
  for (const std::string_view part : split(text, separator)) {
    if (!part.empty()) parts.emplace_back(part);
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

class CodeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("git")) GTEST_SKIP() << "git is not installed";
    fs::create_directory(project());
  }
  fs::path project() const { return folder_.path() / "project"; }
  Store& store() { return store_; }
  void put(const std::string& path, const std::string& text = "x\n") const {
    make_folders((project() / path).parent_path());
    write_file(project() / path, text);
  }
  std::string git(const Strings& words) const {
    Strings all = {"git", "-C", project().string(), "-c", "user.name=a", "-c", "user.email=a@b"};
    all.insert(all.end(), words.begin(), words.end());
    return output_of(all);
  }
  void begin_repository() const { git({"init", "-q", "-b", "main"}); }
  void commit() const {
    git({"add", "-A"});
    git({"commit", "-q", "-m", "x"});
  }
  CodeSnapshot take() { return snapshot_of(store_, project()); }
  /// By GNU tar: names of what is no folder.
  Strings names_in(const CodeSnapshot& snapshot) {
    Strings names = sorted_parts(output_of({"tar", "-tf", store_.path_of(snapshot.digest)->string(),
                                            "--quoting-style=literal"}),
                                 '\n');
    std::erase_if(names, [](const std::string& name) { return name.ends_with('/'); });
    EXPECT_EQ(names.size(), snapshot.files);
    return names;
  }
  Error refused() {
    return error_of([&] { (void)take(); });
  }

 private:
  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
};

TEST_F(CodeTest, WhatGitListsAndNothingElse) {
  begin_repository();
  put("train.py");
  put("lib/model.py");
  put(".gitignore", "*.ckpt\nruns/\n");
  put("gone.py");
  commit();
  put("new.py");
  put("name with\ttab and é.py");
  put("runs/1/log");
  put("lib/a.ckpt");
  fs::remove(project() / "gone.py");
  const CodeSnapshot snapshot = take();
  // The oracle: git itself, without what is gone.
  Strings expected =
      sorted_parts(git({"ls-files", "-z", "--cached", "--others", "--exclude-standard"}), '\0');
  std::erase(expected, "gone.py");
  EXPECT_EQ(names_in(snapshot), expected);
  EXPECT_EQ(expected.size(), 5U);
}

TEST_F(CodeTest, TheSameArchiveThatGnuTarMakes) {
  put("train.py", "print(1)\n");
  put("bin/run.sh", "#!/bin/sh\n");
  put("empty");
  write_file(project() / "empty", "");
  put("deep/er/" + std::string(90, 'n') + "/file", std::string(1000, 'y'));
  fs::create_symlink("train.py", project() / "main.py");
  fs::create_symlink("../../train.py", project() / "deep/er/up.py");
  fs::permissions(project() / "bin/run.sh", fs::perms::owner_all);
  const CodeSnapshot snapshot = take();
  EXPECT_EQ(snapshot.files, 6U);
  const fs::path folder = project().parent_path() / "out";
  fs::create_directory(folder);
  output_of({"tar", "-xpf", store().path_of(snapshot.digest)->string(), "-C", folder.string()});
  output_of({"diff", "-r", "--no-dereference", project().string(), folder.string()});
  // The oracle: GNU tar's own, with owner, times, modes and order as promised.
  const Strings argv = {"tar",
                        "-C",
                        project().string(),
                        "--sort=name",
                        "--owner=0",
                        "--group=0",
                        "--numeric-owner",
                        "--mtime=@0",
                        "--mode=u+rwX,go+rX,go-w,a-s",
                        "--format=ustar",
                        "-b1",
                        "-cf",
                        "-"};
  Strings of_tar = argv;
  of_tar.insert(of_tar.end(), {"bin", "deep", "empty", "main.py", "train.py"});
  // Which modes a link has is nobody's business, and `--mode` changes them.
  const auto listing = [](const fs::path& archive) {
    Strings lines = sorted_parts(
        output_of({"tar", "-tvf", archive.string(), "--numeric-owner", "--full-time", "--utc"}),
        '\n');
    for (std::string& line : lines) {
      if (line.starts_with('l')) line.erase(1, std::string_view("rwxrwxrwx").size());
    }
    return lines;
  };
  const fs::path theirs = folder.parent_path() / "theirs.tar";
  write_file(theirs, output_of(of_tar));
  EXPECT_EQ(listing(*store().path_of(snapshot.digest)), listing(theirs));
}

TEST_F(CodeTest, TheDigestFollowsContentAlone) {
  put("train.py");
  put("lib/run", "y\n");
  fs::permissions(project() / "lib/run", fs::perms(0700));
  const Digest first = take().digest;
  const mode_t before = ::umask(0077);
  fs::permissions(project() / "lib", fs::perms(0700));
  fs::permissions(project() / "train.py", fs::perms(0666));
  fs::last_write_time(project() / "train.py",
                      fs::file_time_type::clock::now() - std::chrono::hours(9));
  fs::create_directory(project() / "empty");
  const Digest again = take().digest;
  ::umask(before);
  EXPECT_EQ(again, first);
  begin_repository();  // which lists the same files
  EXPECT_EQ(take().digest, first);
  fs::permissions(project() / "train.py", fs::perms(0766));
  EXPECT_NE(take().digest, first);
  fs::permissions(project() / "train.py", fs::perms(0644));
  put("train.py", "z\n");
  EXPECT_NE(take().digest, first);
}

TEST_F(CodeTest, IgnoreFilesWhereThereIsNoGit) {
  put("train.py");
  put("data/a.bin");
  put("data/keep.txt");
  put("__pycache__/a.pyc");
  put(".dockerignore", "train.py\n");
  EXPECT_EQ(names_in(take()), (Strings{".dockerignore", "data/a.bin", "data/keep.txt"}));
  put(".mlenvignore", "data\n!data/keep.txt\n.dockerignore\n");
  EXPECT_EQ(names_in(take()), (Strings{".mlenvignore", "data/keep.txt", "train.py"}));
  begin_repository();  // Docker's file is not asked then
  EXPECT_EQ(names_in(take()), (Strings{".mlenvignore", "data/keep.txt", "train.py"}));
  put(".mlenvignore", "[\n");
  EXPECT_EQ(refused().code(), "ignore-invalid");
}

TEST_F(CodeTest, FoldersThatKeepThemselvesOut) {
  put("train.py");
  put("matrix/.gitignore", "*\n");
  put("matrix/sweep/lr=0.1/model");
  put("venv/.gitignore", "# made by venv\n\n*\n");
  put("venv/bin/python");
  put("data/.gitignore", "*\n!keep\n");
  put("data/keep");
  put("lib/.gitignore", "*.pyc\n");
  const Strings expected = {"data/.gitignore", "data/keep", "lib/.gitignore", "train.py"};
  EXPECT_EQ(names_in(take()), expected);
}

TEST_F(CodeTest, SecretsStayBehindUnlessTracked) {
  put("train.py");
  put(".env");
  put("keys/id_rsa");
  CodeSnapshot snapshot = take();
  EXPECT_EQ(names_in(snapshot), Strings{"train.py"});
  EXPECT_EQ(snapshot.kept_back, (Strings{".env", "keys/id_rsa"}));
  begin_repository();
  put("tests/server.pem");
  git({"add", "tests"});
  snapshot = take();
  EXPECT_EQ(names_in(snapshot), (Strings{"tests/server.pem", "train.py"}));
  EXPECT_EQ(snapshot.kept_back, (Strings{".env", "keys/id_rsa"}));
}

TEST_F(CodeTest, RepositoriesWithinTheRepository) {
  begin_repository();
  put("train.py");
  commit();
  put("inner/lib.py");
  output_of({"git", "-C", (project() / "inner").string(), "init", "-q"});
  put("inner/junk.o");
  put("inner/.gitignore", "*.o\n");
  EXPECT_EQ(names_in(take()), (Strings{"inner/.gitignore", "inner/lib.py", "train.py"}));
}

TEST_F(CodeTest, AFolderThatItsRepositoryIgnores) {
  begin_repository();
  put(".gitignore", "*\n");
  put("work/train.py");
  EXPECT_EQ(snapshot_of(store(), project() / "work").files, 1U);
}

TEST_F(CodeTest, LinksThatLeadOut) {
  put("a/b/file");
  put("train.py");
  for (const char* target : {"/etc", "..", "../x", "a/../../x", "b/../../x"}) {
    fs::create_symlink("a/b", project() / "b");
    fs::create_symlink(target, project() / "link");
    const Error error = refused();
    EXPECT_EQ(error.code(), "bad-code") << target;
    EXPECT_NE(std::string(error.what()).find("the link `link` leads to"), std::string::npos);
    fs::remove(project() / "link");
    fs::remove(project() / "b");
  }
  for (const char* target : {"train.py", "a/../train.py", "./a//b/file", "nowhere", "."}) {
    fs::create_symlink(target, project() / "link");
    EXPECT_EQ(take().files, 3U) << target;
    fs::remove(project() / "link");
  }
}

TEST_F(CodeTest, WhatALinkTookThePlaceOf) {
  begin_repository();
  put("lib/a.py");
  put("other/a.py");
  commit();
  fs::remove_all(project() / "lib");
  fs::create_symlink("other", project() / "lib");
  EXPECT_EQ(names_in(take()), (Strings{"lib", "other/a.py"}));
}

TEST_F(CodeTest, WhatIsTooLargeIsNamed) {
  put("train.py");
  put("data/a", std::string(3 << 20, 'x'));
  const Error error = error_of([&] {
    (void)snapshot_of(store(), project(), {std::uint64_t{1} << 20U, 100});
  });
  EXPECT_EQ(error.code(), "bad-code");
  EXPECT_NE(std::string(error.what()).find("`data` 3 MB"), std::string::npos) << error.what();
  EXPECT_EQ(code_of([&] { (void)snapshot_of(store(), project(), {1 << 30, 1}); }), "bad-code");
}

TEST_F(CodeTest, ARepositoryThatGitRefuses) {
  put("train.py");
  put(".git", "gitdir: /nowhere\n");
  const Error error = refused();
  EXPECT_EQ(error.code(), "bad-code");
  EXPECT_NE(std::string(error.what()).find("which is not there"), std::string::npos)
      << error.what();
}

TEST_F(CodeTest, ACommitAsACheckoutHasIt) {
  begin_repository();
  put("train.py", "print(1)\n");
  put("sub/run.py");
  put("id_rsa");
  commit();
  const Digest clean = take().digest;
  git({"tag", "v1"});
  put("train.py", "print(2)\n");
  put("new.py");
  const CodeSnapshot snapshot = snapshot_of_commit(store(), project(), "v1");
  EXPECT_EQ(snapshot.digest, clean);
  EXPECT_EQ(snapshot.commit, sorted_parts(git({"rev-parse", "v1"}), '\n').front());
  EXPECT_EQ(names_in(snapshot_of_commit(store(), project() / "sub", "HEAD")), Strings{"run.py"});
  EXPECT_EQ(code_of([&] { (void)snapshot_of_commit(store(), project(), "v2"); }), "no-commit");
  EXPECT_EQ(code_of([&] { (void)snapshot_of_commit(store(), project(), "--help"); }), "no-commit");
  git({"update-index", "--add", "--cacheinfo", "160000," + *snapshot.commit + ",module"});
  git({"commit", "-q", "-m", "y"});
  EXPECT_EQ(code_of([&] { (void)snapshot_of_commit(store(), project(), "HEAD"); }), "bad-code");
}

TEST_F(CodeTest, WordsOfTheOption) {
  const std::string here = project().string();
  EXPECT_EQ(parse_code(here).revision, "");
  EXPECT_EQ(parse_code(here + "@v1").folder, project());
  EXPECT_EQ(parse_code(here + "@v1").revision, "v1");
  EXPECT_EQ(parse_code("@v1").folder, ".");
  fs::create_directory(project() / "a@b");
  EXPECT_EQ(parse_code(here + "/a@b").revision, "");
  EXPECT_EQ(parse_code(here + "/a@b@c").revision, "c");
  for (const char* wrong : {"/nowhere/at/all", "/nowhere@v1"}) {
    EXPECT_EQ(code_of([&] { (void)parse_code(wrong); }), "bad-code") << wrong;
  }
  EXPECT_EQ(code_of([&] { (void)parse_code(here + "@"); }), "bad-code");
  EXPECT_EQ(code_of([&] { (void)parse_code(here + "@--help"); }), "bad-code");
}

TEST_F(CodeTest, WhatNoPathReachesIsSaidOrLeftOut) {
  put("train.py");
  put(".mlenvignore", "other\n");
  make_deep_tree(project() / "runs", 300, "sixteen letters.");
  const FewDescriptors few;
  const Error error = refused();
  EXPECT_EQ(error.code(), "bad-code");
  EXPECT_NE(std::string(error.what()).find("lies too deep"), std::string::npos) << error.what();
  EXPECT_LT(std::string(error.what()).size(), 900U);
  put(".mlenvignore", "runs\n");
  EXPECT_EQ(names_in(take()), (Strings{".mlenvignore", "train.py"}));
}

TEST_F(CodeTest, ManyLevelsTakeFewDescriptors) {
  make_deep_tree(project() / "deep", 900);
  const FewDescriptors few;
  EXPECT_EQ(take().files, 900U);
}

}  // namespace
}  // namespace mlenv::job
