// Honest repositories of all kinds, where git itself is the oracle; and others, of which nothing is
// obeyed.
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>

#include <gtest/gtest.h>

#include "base/digest.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/record/code_state.hpp"
#include "runner/record/git_config.hpp"
#include "runner/record/git_folders.hpp"
#include "runner/record/git_lfs.hpp"
#include "runner/record/git_repository.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class GitLayoutsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_program("git")) GTEST_SKIP() << "git is not installed";
    fs::create_directory(project());
  }
  fs::path project() const { return folder_.path() / "project"; }
  fs::path beside(const char* name) const { return folder_.path() / name; }

  static std::string git(const fs::path& at, const Strings& words) {
    Command command{Purpose{"test"}};
    command.argv = {"git",
                    "-C",
                    at.string(),
                    "-c",
                    "user.name=a",
                    "-c",
                    "user.email=a@b",
                    "-c",
                    "protocol.file.allow=always"};
    command.argv.insert(command.argv.end(), words.begin(), words.end());
    Captured ran = run_captured(command, std::chrono::seconds(60));
    EXPECT_EQ(ran.exit.code, 0) << ran.err;
    return std::move(ran.out);
  }
  std::string git(const Strings& words) const { return git(project(), words); }
  void begin(const Strings& more = {}) const {
    Strings words = {"init", "-q", "-b", "main"};
    words.insert(words.end(), more.begin(), more.end());
    git(words);
    put("a.py", "1\n");
    put("lib/b.py", "2\n");
    commit();
  }
  void put(const fs::path& path, const std::string& text) const {
    make_folders((project() / path).parent_path());
    write_file(project() / path, text, false);
  }
  void commit() const {
    git({"add", "-A"});
    git({"commit", "-q", "-m", "x"});
  }
  /// What `git status` says, sorted.
  static Strings by_git(const fs::path& at) {
    Strings names;
    const std::string all =
        git(at, {"status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"});
    for (const std::string_view one : split(all, '\0')) {
      if (one.size() > 3) names.emplace_back(one.substr(3));
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  static void expect_as_git(const fs::path& at) {
    const CodeState code = code_state(at);
    ASSERT_TRUE(code.changed) << code.changed.source;
    EXPECT_EQ(*code.changed, by_git(at));
    EXPECT_EQ(code.commit.value, std::string(trim(git(at, {"rev-parse", "HEAD"}))));
  }
  /// A program that leaves `ran` behind.
  std::string evil() const {
    const fs::path program = beside("evil");
    write_file(program, "#!/bin/sh\necho \"$0 $*\" >>'" + beside("ran").string() + "'\ncat\n");
    fs::permissions(program, fs::perms::owner_all);
    return program.string();
  }
  bool ran() const { return fs::exists(beside("ran")); }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(GitLayoutsTest, ChangesOfAllKinds) {
  begin();
  put("staged.py", "x\n");
  git({"add", "staged.py"});
  put("a.py", "changed\n");
  put("new file", "x\n");
  fs::remove(project() / "lib/b.py");
  expect_as_git(project());
  EXPECT_EQ(code_state(project()).changed->size(), 4U);
}

TEST_F(GitLayoutsTest, LinkedWorkTreesAndSeparateFolders) {
  begin();
  git({"worktree", "add", "-q", beside("linked").string()});
  write_file(beside("linked") / "a.py", "other\n");
  expect_as_git(beside("linked"));
  EXPECT_EQ(code_state(beside("linked")).branch.value, "linked");
  EXPECT_EQ(code_state(project()).changed.value, Strings{});

  fs::create_directory(beside("separate"));
  git(beside("separate"), {"init", "-q", "--separate-git-dir", beside("store.git").string()});
  write_file(beside("separate") / "x", "1");
  git(beside("separate"), {"add", "x"});
  git(beside("separate"), {"commit", "-qm", "x"});
  write_file(beside("separate") / "x", "2");
  expect_as_git(beside("separate"));
}

TEST_F(GitLayoutsTest, Sha256SplitIndexSparseShallowAlternates) {
  begin({"--object-format=sha256"});
  put("a.py", "changed\n");
  git({"update-index", "--split-index"});
  put("lib/b.py", "changed\n");
  git({"add", "lib"});
  expect_as_git(project());
  EXPECT_EQ(code_state(project()).commit->size(), 64U);

  git({"commit", "-qam", "y"});
  git(beside("."), {"clone", "-q", "--shared", project().string(), beside("shared").string()});
  write_file(beside("shared") / "a.py", "again\n");
  expect_as_git(beside("shared"));

  git(beside("."),
      {"clone", "-q", "--depth", "1", "file://" + project().string(), beside("shallow").string()});
  write_file(beside("shallow") / "n", "new\n");
  expect_as_git(beside("shallow"));

  git(beside("shallow"), {"sparse-checkout", "set", "--cone", "--sparse-index", "nowhere"});
  EXPECT_FALSE(fs::exists(beside("shallow") / "lib/b.py"));
  expect_as_git(beside("shallow"));
}

TEST_F(GitLayoutsTest, LineEndingsByAttributesAndSettings) {
  begin();
  put(".gitattributes", "*.txt text eol=crlf\n");
  put("a.txt", "one\ntwo\n");
  commit();
  fs::remove(project() / "a.txt");
  git({"checkout", "a.txt"});
  EXPECT_EQ(read_file(project() / "a.txt"), "one\r\ntwo\r\n");
  fs::last_write_time(project() / "a.txt",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  expect_as_git(project());
  git({"config", "core.autocrlf", "true"});
  fs::remove(project() / "lib/b.py");
  git({"checkout", "lib/b.py"});
  EXPECT_EQ(read_file(project() / "lib/b.py"), "2\r\n");
  fs::last_write_time(project() / "lib/b.py",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(code_state(project()).changed.value, Strings{});
  expect_as_git(project());
}

TEST_F(GitLayoutsTest, SubmodulesCountAsGitHasIt) {
  fs::create_directory(beside("other"));
  git(beside("other"), {"init", "-q"});
  write_file(beside("other") / "s", "1");
  git(beside("other"), {"add", "s"});
  git(beside("other"), {"commit", "-qm", "s"});
  begin();
  for (const char* name : {"clean", "dirty", "new", "moved", "quiet", "gone"}) {
    git({"submodule", "--quiet", "add", beside("other").string(), name});
  }
  git({"config", "-f", ".gitmodules", "submodule.quiet.ignore", "dirty"});
  commit();
  expect_as_git(project());
  put("dirty/s", "2");
  put("new/t", "2");
  put("moved/s", "3");
  git(project() / "moved", {"commit", "-qam", "y"});
  put("quiet/s", "4");
  remove_tree(project() / "gone");
  expect_as_git(project());
  EXPECT_EQ(code_state(project()).changed.value, (Strings{"dirty", "gone", "moved", "new"}));
  git({"add", "moved"});
  expect_as_git(project());
  expect_as_git(project() / "dirty");
}

TEST_F(GitLayoutsTest, FilesOfLfsAreWhatTheirPointersSay) {
  begin();
  const std::string content(5000, 'w');
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + Digest::of(content).hex() +
      "\nsize 5000\n";
  put("model.bin", pointer);
  commit();
  put(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
  commit();
  put("model.bin", content);  // as `git lfs` leaves it
  EXPECT_EQ(code_state(project()).changed.value, Strings{});
  put("model.bin", std::string(5000, 'v'));
  EXPECT_EQ(code_state(project()).changed.value, Strings{"model.bin"});
  put("model.bin", "less");
  EXPECT_EQ(code_state(project()).changed.value, Strings{"model.bin"});
}

TEST_F(GitLayoutsTest, FilesOfOtherFiltersCountByTheirTimes) {
  begin();
  put(".gitattributes", "*.nb filter=strip\n");
  const Strings filter = {"-c", "filter.strip.clean=sed s/out//", "-c",
                          "filter.strip.required=true"};
  put("x.nb", "in out\n");
  for (const Strings& words : {Strings{"add", "-A"}, Strings{"commit", "-qm", "nb"}}) {
    Strings all = filter;
    all.insert(all.end(), words.begin(), words.end());
    git(all);
  }
  EXPECT_EQ(code_state(project()).changed.value, Strings{});
  put("x.nb", "other out, longer\n");
  EXPECT_EQ(code_state(project()).changed.value, Strings{"x.nb"});
}

TEST_F(GitLayoutsTest, NothingOfASubmoduleIsRun) {
  begin();
  fs::create_directory(project() / "sub");
  git(project() / "sub", {"init", "-q"});
  put("sub/a", "1");
  git(project() / "sub", {"add", "a"});
  git(project() / "sub", {"commit", "-qm", "s"});
  commit();  // a commit of another repository, in no .gitmodules
  const std::string program = evil();
  for (const char* name : {"filter.evil.clean", "filter.evil.process", "core.fsmonitor",
                           "diff.external", "core.sshCommand", "core.pager", "alias.status"}) {
    git(project() / "sub", {"config", name, program});
  }
  put("included", "[filter \"evil\"]\n\tclean = " + program + "\n[core]\n\tfsmonitor = " + program);
  git(project() / "sub", {"config", "include.path", (project() / "included").string()});
  git(project() / "sub", {"config", "includeIf.gitdir:/.path", (project() / "included").string()});
  put("sub/.gitattributes", "* filter=evil\n");
  put("sub/a", "2");
  fs::last_write_time(project() / "sub/a",
                      fs::file_time_type::clock::now() - std::chrono::hours(9));
  fs::remove(beside("ran"));
  const CodeState code = code_state(project());
  EXPECT_FALSE(ran()) << read_file(beside("ran"));
  EXPECT_EQ(code.changed.value, (Strings{"included", "sub"}));
}

TEST_F(GitLayoutsTest, HooksAndIncludedSettingsRunNothing) {
  begin();
  const std::string program = evil();
  make_folders(project() / ".git/hooks");
  for (const char* hook : {"post-index-change", "fsmonitor-watchman", "query-watchman",
                           "post-checkout", "reference-transaction"}) {
    fs::copy_file(program, project() / ".git/hooks" / hook);
  }
  write_file(beside("settings"), "[core]\n\thooksPath = " + beside(".").string() +
                                     "\n[filter \"evil\"]\n\tprocess = " + program +
                                     "\n\tsmudge = " + program + "\n\tclean = " + program + "\n");
  git({"config", "include.path", beside("settings").string()});
  git({"config", "core.hooksPath", (project() / ".git/hooks").string()});
  put(".gitattributes", "* filter=evil\n");
  put("a.py", "2\n");
  fs::remove(beside("ran"));
  EXPECT_EQ(code_state(project()).changed.value, (Strings{".gitattributes", "a.py"}));
  const std::string commit_name{trim(git({"rev-parse", "HEAD"}))};
  fs::remove(beside("ran"));
  fs::create_directory(beside("out"));
  const fs::path code = export_commit(project(), commit_name, beside("out"));
  EXPECT_EQ(read_file(code / "a.py"), "1\n");
  EXPECT_FALSE(ran()) << read_file(beside("ran"));
}

TEST_F(GitLayoutsTest, TheRepositoryOfAnotherFolderIsRefused) {
  begin();
  const fs::path thief = beside("thief");
  fs::create_directory(thief);
  const auto refused = [&] {
    const CodeState code = code_state(thief);
    return !code.commit && !code.changed;
  };
  write_file(thief / ".git", "gitdir: " + (project() / ".git").string() + "\n");
  EXPECT_TRUE(refused());
  fs::remove(thief / ".git");
  fs::create_directory_symlink(project() / ".git", thief / ".git");
  EXPECT_TRUE(refused());
  fs::remove(thief / ".git");
  git({"worktree", "add", "-q", beside("linked").string()});
  fs::copy_file(beside("linked") / ".git", thief / ".git");
  EXPECT_TRUE(refused());
  fs::remove(thief / ".git");
  // A folder of its own, whose references are another's.
  git(thief, {"init", "-q"});
  write_file(thief / ".git/commondir", (project() / ".git").string() + "\n");
  EXPECT_TRUE(refused());
  fs::remove(thief / ".git/commondir");
  git(thief, {"config", "core.worktree", project().string()});
  EXPECT_TRUE(refused());
}

TEST_F(GitLayoutsTest, ReferencesAreNotReadThroughLinks) {
  begin();
  const fs::path thief = beside("thief");
  fs::create_directory(thief);
  git(thief, {"init", "-q", "-b", "main"});
  fs::create_symlink(project() / ".git/refs/heads/main", thief / ".git/refs/heads/main");
  EXPECT_FALSE(code_state(thief).commit);
  remove_tree(thief / ".git/refs");
  fs::create_directory_symlink(project() / ".git/refs", thief / ".git/refs");
  EXPECT_FALSE(code_state(thief).commit);
}

TEST_F(GitLayoutsTest, CodeOfASeparateFolderIsNotPassedOnUntilItSaysWhoseItIs) {
  git({"init", "-q", "--separate-git-dir", beside("store.git").string()});
  put("x", "1");
  commit();
  const std::string name{trim(git({"rev-parse", "HEAD"}))};
  fs::create_directory(beside("out"));
  EXPECT_EQ(code_of([&] { (void)export_commit(project(), name, beside("out")); }), "no-commit");
  git({"config", "core.worktree", project().string()});
  EXPECT_EQ(read_file(export_commit(project(), name, beside("out")) / "x"), "1");
}

TEST_F(GitLayoutsTest, PipesAreNotWaitedFor) {
  begin();
  for (const char* name : {"HEAD", "index", "config", "packed-refs", "commondir", "info/exclude",
                           "objects/info/alternates", "objects/pack/pack-0.idx", "../.gitignore",
                           "../.gitattributes"}) {
    const fs::path path = project() / ".git" / name;
    if (fs::exists(path)) fs::rename(path, beside("kept"));
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const auto before = std::chrono::steady_clock::now();
    (void)code_state(project());
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30)) << name;
    fs::remove(path);
    if (fs::exists(beside("kept"))) fs::rename(beside("kept"), path);
  }
}

TEST_F(GitLayoutsTest, AnObjectThatFillsTheMachineIsRefused) {
  begin();
  // A tree of 1 GB of zeros and more is a few MB packed; git reads it whole.
  Command command{Purpose{"test"}};
  command.argv = {
      "python3", "-c",
      "import hashlib,os,sys,zlib\n"
      "git=sys.argv[1]; n=1088<<20; head=b'tree %d\\0'%n; z=zlib.compressobj(1); "
      "h=hashlib.sha1(head)\n"
      "chunk=bytes(1<<24); out=[z.compress(head)]\n"
      "for _ in range(n>>24): h.update(chunk); out.append(z.compress(chunk))\n"
      "out.append(z.flush()); x=h.hexdigest(); "
      "os.makedirs(f'{git}/objects/{x[:2]}',exist_ok=True)\n"
      "open(f'{git}/objects/{x[:2]}/{x[2:]}','wb').write(b''.join(out))\n"
      "c=f'tree {x}\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n'.encode()\n"
      "c=b'commit %d\\0'%len(c)+c; x=hashlib.sha1(c).hexdigest()\n"
      "os.makedirs(f'{git}/objects/{x[:2]}',exist_ok=True)\n"
      "open(f'{git}/objects/{x[:2]}/{x[2:]}','wb').write(zlib.compress(c))\n"
      "open(f'{git}/refs/heads/main','w').write(x+'\\n')\n",
      (project() / ".git").string()};
  ASSERT_EQ(run_captured(command, std::chrono::seconds(120)).exit.code, 0);
  const CodeState code = code_state(project());
  EXPECT_TRUE(code.commit);
  EXPECT_FALSE(code.changed);
  EXPECT_NE(code.changed.source.find("allocat"), std::string::npos) << code.changed.source;
}

TEST(GitConfig, IsReadAsGitWritesIt) {
  const GitConfig config = parse_git_config(
      "# comment\n[Core]\n\tBare = false ; no\n\tplain\n[branch \"Ma\\\"in\"] merge = "
      "\"refs/heads/a # b\" \n[a.b]\nlong = one \\\n two\nempty =\n\ttab = \"x\\ty\"",
      "config");
  EXPECT_EQ(config.last("core.bare"), "false");
  EXPECT_EQ(config.last("core.plain"), "true");
  EXPECT_EQ(config.last("branch.Ma\"in.merge"), "refs/heads/a # b");
  EXPECT_EQ(config.last("a.b.long"), "one  two");
  EXPECT_EQ(config.last("a.b.empty"), "");
  EXPECT_EQ(config.last("a.b.tab"), "x\ty");
  EXPECT_EQ(config.last("none"), std::nullopt);
  for (const char* bad : {"[core", "[core]\n=x", "a = b", "[core]\na = \"x", "[c \"x\n\"]\na=1",
                          "[core]\na = \\q", "[core]\n1a = 2"}) {
    EXPECT_THROW(parse_git_config(bad, "config"), NotKnown) << bad;
  }
}

TEST(LfsPointer, IsReadAsItsSpecificationHasIt) {
  const std::string hex(64, 'a');
  const std::string good =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + hex + "\nsize 12\n";
  ASSERT_TRUE(parse_lfs_pointer(good));
  EXPECT_EQ(parse_lfs_pointer(good)->size_bytes, 12U);
  EXPECT_EQ(parse_lfs_pointer(good)->content.hex(), hex);
  for (const std::string& bad :
       {good + "x", good.substr(1), std::string{}, good.substr(0, good.size() - 1),
        "version https://git-lfs.github.com/spec/v1\noid md5:" + hex + "\nsize 12\n",
        good + std::string(2000, ' ')}) {
    EXPECT_FALSE(parse_lfs_pointer(bad)) << bad;
  }
}

TEST_F(GitLayoutsTest, TreesOfOthersTakeFewDescriptors) {
  make_deep_tree(project() / "deep", 900);
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\noid sha256:" + Digest::of("x").hex() +
      "\nsize 1\n";
  put("deep/d/d/model", pointer);
  const FewDescriptors few;
  EXPECT_EQ(lfs_pointers(project()).size(), 1U);
}

TEST_F(GitLayoutsTest, ReferencesWithoutEndAreNotKnown) {
  begin();
  git({"branch", "other"});
  make_deep_tree(project() / ".git/refs/deep", 300, "sixteen letters.");
  const FewDescriptors few;
  try {
    const GitRepository repository{project(), GitRepository::References::all};
    FAIL();
  } catch (const NotKnown& error) {
    EXPECT_EQ(std::string(error.what()), "the repository has too many references");
  }
}

/// As git 2.45 and later make them with `--ref-format=reftable`: HEAD and refs are there for older
/// programs alone, and name nothing.
TEST_F(GitLayoutsTest, FormatsThatAreNotUnderstoodAreNotKnown) {
  begin();
  const std::string before = read_file(project() / ".git/config");
  const auto with = [&](const std::string& version, const std::string& extensions) {
    std::string text = before;
    const std::string old = "repositoryformatversion = 0";
    text.replace(text.find(old), old.size(), "repositoryformatversion = " + version);
    write_file(project() / ".git/config", text + extensions);
    return code_state(project());
  };
  for (const auto& [version, extensions] :
       {std::pair{"1", "[extensions]\n\trefStorage = reftable\n"},
        std::pair{"1", "[extensions]\n\trefstorage = reftable:///elsewhere\n"},
        std::pair{"0", "[extensions]\n\trefStorage = reftable\n"},
        std::pair{"1", "[extensions]\n\tnewThing = true\n"},
        std::pair{"1", "[extensions]\n\tobjectFormat = sha3\n"}, std::pair{"2", ""},
        std::pair{"-1", ""}, std::pair{"one", ""}}) {
    const CodeState code = with(version, extensions);
    EXPECT_FALSE(code.commit) << version << extensions;
    EXPECT_FALSE(code.changed) << version << extensions;
    EXPECT_NE(code.commit.source.find("format"), std::string::npos) << code.commit.source;
  }
  for (const auto& [version, extensions] :
       {std::pair{"0", ""}, std::pair{"1", ""},
        std::pair{"1", "[extensions]\n\trefStorage = files\n\tobjectFormat = sha1\n"},
        std::pair{"1", "[extensions]\n\tworktreeConfig = false\n\tpreciousObjects = true\n"},
        std::pair{"0", "[extensions]\n\tnewThing = true\n"}}) {
    EXPECT_TRUE(with(version, extensions).commit) << version << extensions;
  }
}

}  // namespace
}  // namespace mlenv
