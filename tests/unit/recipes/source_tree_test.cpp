// Trees that wheels are built from: what counts, and what does not.
#include "recipes/source_tree.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "recipes/resolve/direct.hpp"
#include "recipes/vendored.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/rounds.hpp"

namespace mlenv {
namespace {

class SourceTreeTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text, mode_t mode = 0644) {
    const fs::path where = home() / path;
    fs::create_directories(where.parent_path());
    write_file(where, text, /*durable=*/false);
    ASSERT_EQ(::chmod(where.c_str(), mode), 0);
  }
  Recipe recipe(const std::string& packages = "[]") {
    put("recipe.yaml", "name: a\nbase: debian:bookworm\npackages: " + packages + "\n");
    return read_recipe(home() / "recipe.yaml");
  }
  std::string paths(const std::string& folder) {
    std::string all;
    for (const SourceFile& file : read_project_tree(recipe(), folder).files) all += file.path + ' ';
    return all;
  }
  fs::path home() const { return folder_.path() / "home"; }
  const fs::path& outside() const { return folder_.path(); }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(SourceTreeTest, TheDigestIsOfNamesContentsModesAndLinks) {
  put("x/b.py", "b\n");
  put("x/a/run", "#!/bin/sh\n", 0750);
  fs::create_symlink("b.py", home() / "x/c.py");
  fs::create_directories(home() / "x/empty");
  const SourceTree tree = read_source_tree(home() / "x");
  ASSERT_EQ(tree.files.size(), 3U);
  std::string lines = Digest::of("#!/bin/sh\n").hex() + " 100755 a/run";
  lines += '\0';
  lines += Digest::of("b\n").hex() + " 100644 b.py";
  lines += '\0';
  lines += Digest::of("b.py").hex() + " 120000 c.py";
  lines += '\0';
  EXPECT_EQ(tree.digest(), Digest::of(lines));

  copy_source_tree(tree, home() / "copy");
  EXPECT_EQ(read_source_tree(home() / "copy").digest(), tree.digest());
  EXPECT_FALSE(fs::exists(home() / "copy/empty"));
  put("x/b.py", "c\n");
  try {
    copy_source_tree(tree, home() / "again");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "file-changed");
  }
}

TEST_F(SourceTreeTest, ALinkThatIsPutInAFoldersPlaceIsNotFollowed) {
  put("x/d/note", "the same");
  fs::create_directories(outside() / "elsewhere");
  write_file(outside() / "elsewhere/note", "the same", /*durable=*/false);
  const SourceTree tree = read_source_tree(home() / "x");
  fs::rename(home() / "x/d", home() / "aside");
  fs::create_symlink(outside() / "elsewhere", home() / "x/d");
  EXPECT_EQ(code_of([&] { copy_source_tree(tree, home() / "copy"); }), "file-changed");
}

TEST_F(SourceTreeTest, AFileThatVanishesMeanwhileLeavesNoHalfTree) {
  for (int i = 0; i < 20; ++i) put("x/file-" + std::to_string(i), "1");
  const Digest with = read_source_tree(home() / "x").digest();
  const SourceTree before = read_source_tree(home() / "x");
  fs::rename(home() / "x/file-7", home() / "aside");
  const Digest without = read_source_tree(home() / "x").digest();
  const auto code_of = [](const std::function<void()>& work) -> std::string {
    try {
      work();
      return {};
    } catch (const Error& error) {
      return error.code();
    }
  };
  EXPECT_EQ(code_of([&] { copy_source_tree(before, home() / "copy"); }), "file-changed");
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) {
      fs::rename(home() / "aside", home() / "x/file-7");
      fs::rename(home() / "x/file-7", home() / "aside");
    }
  });
  for (int i = 0; i < rounds(60, 300); ++i) {
    std::optional<Digest> found;
    const std::string code = code_of([&] { found = read_source_tree(home() / "x").digest(); });
    EXPECT_EQ(code, found ? "" : "file-changed");
    EXPECT_TRUE(!found || *found == with || *found == without);
  }
  done = true;
  writer.join();
}

TEST_F(SourceTreeTest, WhatNoPathReachesIsSaidOrLeftOut) {
  constexpr int kLevels = 300;
  make_deep_tree(home() / "x/runs", kLevels, "sixteen letters.");
  put("x/x.py", "1");
  put(".mlenvignore", "");
  const FewDescriptors few;
  for (const bool project : {true, false}) {
    const Error error = error_of([&] {
      (void)(project ? read_project_tree(recipe(), "./x") : read_source_tree(home() / "x"));
    });
    EXPECT_EQ(error.code(), "bad-source");
    EXPECT_NE(error.frames().front().find("lies too deep"), std::string::npos) << error.what();
    EXPECT_LT(error.frames().front().size(), 500U);
  }
  put(".mlenvignore", "x/runs\n");
  EXPECT_EQ(paths("./x"), "x.py ");
  remove_tree(home());
}

TEST_F(SourceTreeTest, ManyLevelsTakeFewDescriptors) {
  make_deep_tree(home() / "x", 900);
  const FewDescriptors few;
  EXPECT_EQ(read_source_tree(home() / "x").files.size(), 900U);
}

TEST_F(SourceTreeTest, WhatDoesNotCount) {
  for (const char* path :
       {"libs/x/x.py", "libs/x/.git/HEAD", "libs/x/x.egg-info/PKG-INFO", "libs/x/build/lib/x.py",
        "libs/x/build/own.py", "libs/x/.env", "libs/x/__pycache__/x.pyc", "libs/x/notes.tmp",
        "recipe.lock", "recipe.built", "recipe.txt"}) {
    put(path, "1");
  }
  put(".mlenvignore", "libs/**/*.tmp\n");
  EXPECT_EQ(paths("./libs/x"), "build/own.py x.py ");
  EXPECT_EQ(paths("."),
            ".mlenvignore libs/x/build/lib/x.py libs/x/build/own.py libs/x/x.py recipe.txt ");

  // Outside of the recipe's folder, its own rules.
  put("../shared/x.py", "1");
  put("../shared/a.tmp", "1");
  put("../shared/.mlenvignore", "x.py\n");
  EXPECT_EQ(paths("../shared"), ".mlenvignore a.tmp ");
  put(".mlenvignore", "libs/**\n");
  try {
    read_project_tree(recipe(), "./libs/x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "bad-source");
    EXPECT_EQ(error.frames().front(), "nothing of `./libs/x` is left to build from");
  }
}

TEST_F(SourceTreeTest, OnlyFoldersOfBuildToolsAreLeftOvers) {
  for (const char* path :
       {"x/build/lib.py", "x/build/bdist.txt", "x/build/lib.linux-x86_64-3.11/x.py",
        "x/build/temp.linux-x86_64-3.11/x.o", "x/build/bdist.linux-x86_64/x", "x/.eggs/y/z",
        "x/build/scripts-3.11/run", "x/build/__editable__.x-1/x.py", "x/build/own/lib.x/y.py",
        "x/sub/build/lib/y.py", "x/dist/app.js"}) {
    put(path, "1");
  }
  EXPECT_EQ(paths("./x"),
            "build/bdist.txt build/lib.py build/own/lib.x/y.py dist/app.js sub/build/lib/y.py ");
}

TEST_F(SourceTreeTest, WhatMlenvWritesBesideARecipeIsNoSource) {
  const std::string digest(64, 'a');
  for (const std::string& path :
       {std::string("app.py"), std::string("vendor/x-1-py3-none-any.whl"),
        std::string("vendor/own.tar.gz"), "copies/" + digest, std::string("copies/y-1.tar.gz"),
        std::string(".tmp-1f"), std::string("vendor/.tmp-2f"), std::string("copies/.tmp-3f"),
        std::string("copies/lib.py"), std::string("poetry.lock")}) {
    put(path, "1");
  }
  mark_vendored(home() / "vendor", {"x-1-py3-none-any.whl"});
  mark_vendored(home() / "copies", {digest});
  mark_vendored(home() / "copies", {digest, "y-1.tar.gz"});
  EXPECT_EQ(read_file(home() / "copies" / kVendorMark),
            "# Written by `mlenv vendor`: its copies here, which are part of no source.\n" +
                digest + "\ny-1.tar.gz\n");
  Lock lock;
  lock.request.base = "debian:bookworm";
  put("other.lock", render_lock(lock));
  put("other.built", "# Written by `mlenv build`: x\n");
  put("sub/kept.lock", render_lock(lock));
  EXPECT_EQ(paths("."), "app.py copies/lib.py poetry.lock sub/kept.lock vendor/own.tar.gz ");
}

TEST_F(SourceTreeTest, AMarkThatIsNoFileMarksNothing) {
  put("app.py", "1");
  put("other", "app.py\n");
  for (const char* folder : {"pipe", "folder", "link"}) fs::create_directory(home() / folder);
  ASSERT_EQ(::mkfifo((home() / "pipe" / kVendorMark).c_str(), 0600), 0);
  fs::create_directory(home() / "folder" / kVendorMark);
  fs::create_symlink(home() / "other", home() / "link" / kVendorMark);
  for (const char* folder : {"pipe", "folder", "link"}) {
    EXPECT_TRUE(vendored_names(home() / folder).empty()) << folder;
    EXPECT_EQ(code_of([&] { mark_vendored(home() / folder, {"a"}); }), "not-a-file") << folder;
  }
}

TEST_F(SourceTreeTest, ChangesSinceALockAreTold) {
  put("x/x.py", "1");
  put("w/x-1-py3-none-any.whl", "2");
  const Recipe own = recipe();
  Lock lock;
  LockedSource tree{"x", "1", {}, 0, read_project_tree(own, "./x").digest(), {}};
  tree.path = "./x";
  LockedSource file{"y", "1", "x-1-py3-none-any.whl", 1, Digest::of("2"), {}};
  file.path = "./w/x-1-py3-none-any.whl";
  LockedSource git{"z", "1", {}, 0, Digest::of("3"), {}};
  git.git = "https://h.example/z";
  lock.sources = {tree, file, git};
  EXPECT_TRUE(source_changes(own, lock).empty());
  put("x/x.py", "2");
  fs::remove(home() / "w/x-1-py3-none-any.whl");
  const auto changes = source_changes(own, lock);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_TRUE(changes[0].starts_with("`./x` differs: `x` was built of ")) << changes[0];
  EXPECT_EQ(changes[1], "`./w/x-1-py3-none-any.whl`, of which `y` was built, is not there");
}

TEST_F(SourceTreeTest, OneAddressAPackage) {
  const Recipe twice = recipe("[\"b @ ./b\", \"a @ ./a\", \"B[x] @ b\"]");
  const MarkerEnvironment here{"3.11.2", "x86_64"};
  const auto found = direct_requirements(twice, here).required;
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_EQ(found[1].address.place, "./b");
  const Recipe torn = recipe("[\"a @ ./a\", \"a @ ./b\"]");
  try {
    direct_requirements(torn, here);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "recipe-invalid");
    EXPECT_NE(error.frames().front().find("recipe.yaml:3:23: `a` is asked for from `./a` too"),
              std::string::npos)
        << error.frames().front();
  }
  const Recipe apart = recipe(
      "[\"a @ ./a ; platform_machine == 'x86_64'\", \"a @ ./b ; platform_machine == 'aarch64'\"]");
  EXPECT_EQ(direct_requirements(apart, here).required.at(0).address.place, "./a");
  EXPECT_EQ(direct_requirements(apart, {"3.11.2", "aarch64"}).required.at(0).address.place, "./b");
  EXPECT_TRUE(direct_requirements(apart, {"3.11.2", "riscv64"}).required.empty());
  try {
    find_direct_path(found[0]);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.frames().front().find("`./a` does not exist"), std::string::npos);
  }
}

}  // namespace
}  // namespace mlenv
