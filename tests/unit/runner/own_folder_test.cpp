#include "runner/own_folder.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <utime.h>

namespace mlenv {
namespace {

const std::string kName(64, 'a');

class OwnFolderTest : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return root_.path() / name; }

 private:
  TemporaryFolder root_{temporary_root()};
};

TEST_F(OwnFolderTest, RemembersWhatWasWritten) {
  const OwnFolder folder{at("a/b")};
  EXPECT_EQ(folder.read(kName), std::nullopt);
  folder.write(kName, "yes");
  EXPECT_EQ(OwnFolder{at("a/b")}.read(kName), "yes");
  EXPECT_EQ(fs::status(at("a/b")).permissions(), fs::perms::owner_all);
}

TEST_F(OwnFolderTest, AFolderThatOthersMayWriteToIsNotUsed) {
  fs::create_directory(at("shared"));
  write_file(at("shared") / kName, "forged");
  fs::permissions(at("shared"), fs::perms::all);
  const OwnFolder folder{at("shared")};
  EXPECT_EQ(folder.read(kName), std::nullopt);
  folder.write(kName, "x");
  EXPECT_EQ(read_file(at("shared") / kName), "forged");
}

TEST_F(OwnFolderTest, LinksAreNotFollowed) {
  fs::create_directory(at("victim"));
  write_file(at("victim") / kName, "theirs");
  fs::create_directory_symlink(at("victim"), at("link"));
  const OwnFolder linked{at("link")};
  EXPECT_EQ(linked.read(kName), std::nullopt);
  linked.forget_older_than(std::chrono::hours(-1));
  EXPECT_TRUE(fs::exists(at("victim") / kName));

  const OwnFolder folder{at("own")};
  fs::create_symlink(at("victim") / kName, at("own") / kName);
  EXPECT_EQ(folder.read(kName), std::nullopt);
  folder.forget_older_than(std::chrono::hours(-1));
  EXPECT_TRUE(fs::is_symlink(at("own") / kName));
}

TEST_F(OwnFolderTest, ForgetsItsOwnOldFilesAlone) {
  const OwnFolder folder{at("own")};
  const std::string old = std::string(64, 'b') + ".json";
  for (const std::string& name : {kName, old, std::string("notes.txt")}) folder.write(name, "x");
  const utimbuf long_ago{1, 1};
  for (const std::string& name : {old, std::string("notes.txt")}) {
    ASSERT_EQ(::utime((at("own") / name).c_str(), &long_ago), 0);
  }
  folder.forget_older_than(std::chrono::hours(24));
  EXPECT_TRUE(fs::exists(at("own") / kName));
  EXPECT_FALSE(fs::exists(at("own") / old));
  EXPECT_TRUE(fs::exists(at("own") / "notes.txt"));
}

TEST_F(OwnFolderTest, WhereNoneCanBeMadeNothingIsRemembered) {
  write_file(at("file"), "");
  const OwnFolder folder{at("file") / "below"};
  folder.write(kName, "x");
  EXPECT_EQ(folder.read(kName), std::nullopt);
  folder.forget_older_than(std::chrono::hours(1));
}

}  // namespace
}  // namespace mlenv
