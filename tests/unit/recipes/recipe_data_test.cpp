#include <unistd.h>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/process.hpp"
#include "recipes/data_digest.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/deep_tree.hpp"
#include "tests/support/small_recipe.hpp"

namespace mlenv {
namespace {

const std::string kDataDigest = Digest::of("x").str();

using test::mistakes_of;
using test::recipe_with;

TEST(RecipeData, SaysWhereAndWhat) {
  const Recipe recipe =
      recipe_with("data:\n  corpus: {from: ./c/../corpus/, digest: \"" + kDataDigest +
                  "\", stage: node}\n  other: {from: /srv/x, to: /mnt/x}\n");
  ASSERT_EQ(recipe.data.size(), 2U);
  EXPECT_EQ(recipe.data[0].from, "corpus");
  EXPECT_EQ(recipe.data[0].to, "/data/corpus");
  EXPECT_EQ(recipe.data[0].digest, kDataDigest);
  EXPECT_EQ(recipe.data[0].stage, "node");
  EXPECT_EQ(recipe.data[1].from, "/srv/x");
  EXPECT_EQ(recipe.data[1].to, "/mnt/x");
  EXPECT_TRUE(is_data(recipe, "corpus"));
  EXPECT_TRUE(is_data(recipe, "corpus/a/b"));
  EXPECT_FALSE(is_data(recipe, "corpus2"));
}

TEST(RecipeData, NamesWhatIsWrong) {
  const auto expect = [](const std::string& rest, std::string_view words) {
    const std::string found = mistakes_of(rest);
    EXPECT_NE(found.find(words), std::string::npos) << found;
  };
  expect("data: [a]\n", "`data` is a map of data sets");
  expect("data: {a: ./a}\n", "a data set is a map");
  expect("data: {a: {}}\n", "write `from: ./corpus`");
  expect("data: {a: {from: .}}\n", "`.` is no folder of data alone");
  expect("data: {a: {from: ~/x}}\n", "`~/x` is no path");
  expect("data: {a/b: {from: x}}\n", "`a/b` is no name for a data set");
  expect("data: {a: {from: x, digest: abc}}\n", "`abc` is no digest");
  expect("data: {a: {from: x, stage: nod}}\n", "unknown `stage` `nod`");
  expect("data: {a: {from: x, to: data}}\n", "`data` is not an absolute path");
  expect("data: {a: {from: x, to: /proc/x}}\n", "no data can be at `/proc`");
  expect("data: {a: {from: x}, b: {from: y, to: /data/a/b}}\n", "`a` and `b` meet");
  expect("data: {a: {from: x}}\nfiles: {x/part: /w}\n", "`x/part` is data, which is never in");
}

TEST(RecipeData, IsInTheLockSinceRevisionTwo) {
  Lock lock;
  lock.request.base = "debian:bookworm";
  lock.distribution = "debian";
  lock.suite = "bookworm";
  lock.settings.name = "a";
  lock.settings.workdir = "/workspace";
  lock.settings.data = {{"corpus", "/data/corpus", kDataDigest, "node"},
                        {"d", "/d", kDataDigest, ""}};
  lock.revision = least_revision(lock);
  EXPECT_EQ(lock.revision, 2);
  const std::string text = render_lock(lock);
  EXPECT_EQ(parse_lock(text, "recipe.lock"), lock) << text;
  Lock other = lock;
  other.settings.data.pop_back();
  EXPECT_EQ(lock_differences(lock, other),
            std::vector<std::string>{"data d: " + kDataDigest + " at /d → none"});
}

class DataDigest : public ::testing::Test {
 protected:
  Digest digest(const char* name) {
    Pool pool{2};
    QuietProgress progress;
    return data_digest(folder_.path() / name, pool, progress);
  }
  std::string refusal_of(const char* name) {
    try {
      digest(name);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "bad-data");
      return error.what();
    }
    return {};
  }
  void put(const fs::path& path, std::string_view text) {
    make_folders((folder_.path() / path).parent_path());
    write_file(folder_.path() / path, text, false);
  }
  TemporaryFolder folder_{temporary_root(), "mlenv-data-"};
};

TEST_F(DataDigest, IsWhatCoreutilsSay) {
  put("file", "content");
  EXPECT_EQ(digest("file"), Digest::of("content"));
  put("set/b", "2");
  put("set/a.x", "1");
  put("set/a/x y\nz", "3");
  make_folders(folder_.path() / "set/empty");
  fs::create_symlink("../b", folder_.path() / "set/a/link");
  Command listed{Purpose{"test"}};
  listed.argv = {"/bin/sh", "-c",
                 "find -L . -type f -printf '%P\\0' | LC_ALL=C sort -z | xargs -0 sha256sum -z | "
                 "sha256sum"};
  listed.folder = folder_.path() / "set";
  const Captured said = run_captured(listed, std::chrono::seconds{30});
  EXPECT_EQ(digest("set").hex(), said.out.substr(0, 64)) << said.err;
  const Digest before = digest("set");
  const Digest fingerprint = data_fingerprint(folder_.path() / "set");
  EXPECT_EQ(data_fingerprint(folder_.path() / "set"), fingerprint);
  put("set/b", "4");
  EXPECT_NE(digest("set"), before);
  EXPECT_NE(data_fingerprint(folder_.path() / "set"), fingerprint);
}

TEST_F(DataDigest, RefusesWhatAMountWouldNotShow) {
  put("set/b", "2");
  put("outside", "x");
  fs::create_symlink("../outside", folder_.path() / "set/out");
  EXPECT_NE(refusal_of("set").find("leads out of the data set"), std::string::npos);
  fs::remove(folder_.path() / "set/out");
  fs::create_symlink("nothing", folder_.path() / "set/dangling");
  EXPECT_NE(refusal_of("set").find("leads nowhere"), std::string::npos);
  fs::remove(folder_.path() / "set/dangling");
  fs::create_symlink(".", folder_.path() / "set/loop");
  EXPECT_NE(refusal_of("set"), "");
  fs::remove(folder_.path() / "set/loop");
  make_deep_tree(folder_.path() / "set/deep", 200, "sixteen letters.");
  const std::string deep = refusal_of("set");
  EXPECT_NE(deep.find("lies too deep"), std::string::npos);
  EXPECT_LT(deep.size(), 700U);
  remove_tree(folder_.path() / "set/deep");
  ASSERT_EQ(::mkfifo((folder_.path() / "set/pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal_of("set").find("is a socket, pipe or device"), std::string::npos);
}

/// Twelve folders, each with four links to the next: sixteen million paths.
TEST_F(DataDigest, LinksMakeNoEndlessListOfFewFiles) {
  constexpr int kFolders = 12;
  for (int i = 0; i < kFolders; ++i) {
    const fs::path folder = folder_.path() / fmt::format("set/{}", i);
    make_folders(folder);
    for (const char* name : {"a", "b", "c", "d"}) {
      fs::create_symlink(fmt::format("../{}", i + 1), folder / name);
    }
  }
  put(fmt::format("set/{}/file", kFolders), "1");
  const std::string said = refusal_of("set");
  EXPECT_NE(said.find("lead to the same folders again and again"), std::string::npos) << said;
}

TEST_F(DataDigest, LinksToFoldersAreReadAsOnes) {
  put("set/v1/file", "1");
  put("set/v1/more/file", "2");
  fs::create_symlink("v1", folder_.path() / "set/latest");
  fs::create_symlink("latest/more", folder_.path() / "set/some");
  Pool pool;
  QuietProgress progress;
  std::string paths;
  for (const DataFile& file : data_list(folder_.path() / "set", pool, progress).files) {
    paths += file.path + " ";
  }
  EXPECT_EQ(paths, "latest/file latest/more/file some/file v1/file v1/more/file ");
}

}  // namespace
}  // namespace mlenv
