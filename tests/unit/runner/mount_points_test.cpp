#include "runner/local/mount_points.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

/// As an ordinary user's container with several ids has them; the owner is who runs the test.
class LocalMountPoints : public testing::Test {
 protected:
  LocalMountPoints() {
    make_folders(image_ / "etc");
    make_folders(project_);
    make_folders(data_);
    write_file(file_, "", false);
    bundle_.root = image_;
    bundle_.workdir = "/workspace";
    bundle_.mounts = {{project_, "/workspace", false}};
    bundle_.user.uid = ::getuid();
    bundle_.user.gid = ::getgid();
  }
  void make(std::vector<Mount> more, const std::vector<std::string>& memory = {}) const {
    Bundle bundle = bundle_;
    bundle.mounts.insert(bundle.mounts.end(), more.begin(), more.end());
    for (const std::string& target : memory) {
      CdiMount one;
      one.path = target;
      bundle.file_systems.push_back(one);
    }
    make_mount_points(bundle, ImageRoot{image_});
  }
  TemporaryFolder folder_{temporary_root()};
  fs::path image_ = folder_.path() / "image";
  fs::path project_ = folder_.path() / "project";
  fs::path data_ = folder_.path() / "data";
  fs::path file_ = folder_.path() / "file";
  Bundle bundle_;
};

TEST_F(LocalMountPoints, WithTheFoldersAbove) {
  make({{file_, "/workspace/conf/deep/file"}, {data_, "/opt/a/b"}, {file_, "/opt/c/file"}},
       {"/workspace/memory/x"});
  EXPECT_TRUE(fs::is_regular_file(project_ / "conf/deep/file"));
  EXPECT_TRUE(fs::is_directory(project_ / "memory/x"));
  EXPECT_TRUE(fs::is_directory(image_ / "opt/a/b"));
  EXPECT_TRUE(fs::is_regular_file(image_ / "opt/c/file"));
  EXPECT_TRUE(fs::is_directory(image_ / "proc"));
  EXPECT_TRUE(fs::is_directory(image_ / "workspace"));
}

TEST_F(LocalMountPoints, LinksLeadWhereTheyLeadInTheContainer) {
  fs::create_symlink("inner/place", project_ / "link");
  fs::create_symlink("/var/new", image_ / "etc/link");
  fs::create_symlink("/workspace/of-image", image_ / "etc/to-project");
  make({{data_, "/workspace/link"}, {file_, "/etc/link"}, {data_, "/etc/to-project/x"}});
  EXPECT_TRUE(fs::is_directory(project_ / "inner/place"));
  EXPECT_TRUE(fs::is_regular_file(image_ / "var/new"));
  EXPECT_TRUE(fs::is_directory(project_ / "of-image/x"));
  EXPECT_TRUE(fs::is_symlink(project_ / "link"));
}

TEST_F(LocalMountPoints, NothingBelowAFolderInMemoryIsMadeOnTheHost) {
  make({{data_, "/workspace/memory/x"}}, {"/workspace/memory"});
  EXPECT_TRUE(fs::is_directory(project_ / "memory"));
  EXPECT_FALSE(fs::exists(project_ / "memory/x"));
}

TEST_F(LocalMountPoints, WhatCannotBeMadeIsTold) {
  EXPECT_EQ(code_of([&] { make({{data_, "/data", true}, {file_, "/data/new"}}); }), "bad-mount");
  EXPECT_EQ(code_of([&] { make({{data_, "/data", true}}, {"/data/new"}); }), "bad-mount");
  EXPECT_TRUE(fs::is_empty(data_));
  fs::create_symlink("circle", project_ / "circle");
  EXPECT_EQ(code_of([&] { make({{data_, "/workspace/circle/x"}}); }), "bad-mount");
  write_file(image_ / "etc/file", "", false);
  EXPECT_EQ(code_of([&] { make({{data_, "/etc/file/x"}}); }), "bad-mount");
}

}  // namespace
}  // namespace mlenv
