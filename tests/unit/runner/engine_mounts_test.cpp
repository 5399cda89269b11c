#include <gtest/gtest.h>
#include <sys/stat.h>

#include "runner/engine/engine_command.hpp"
#include "runner/engine/engine_words.hpp"
#include "runner/engine/mount_points.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

class MountPoints : public testing::Test {
 protected:
  MountPoints() {
    fs::create_directories(project_);
    fs::create_directories(outside_);
    fs::create_directories(data_);
    write_file(file_, "", /*durable=*/false);
  }
  void make(std::vector<Mount> more, const std::vector<std::string>& memory = {},
            bool read_only = false, const std::optional<fs::path>& layer = std::nullopt) const {
    std::vector<Mount> mounts{{project_, "/workspace", read_only}};
    mounts.insert(mounts.end(), more.begin(), more.end());
    EngineContainer container;
    container.mounts = std::move(mounts);
    if (layer) container.layers["/workspace"] = {project_, *layer, {}, {}};
    make_mount_points(container, memory);
  }
  bool is_empty(const fs::path& folder) const { return fs::is_empty(folder); }

  TemporaryFolder folder_{temporary_root()};
  fs::path project_ = folder_.path() / "project";
  fs::path outside_ = folder_.path() / "outside";
  fs::path data_ = folder_.path() / "data";
  fs::path file_ = folder_.path() / "file";
};

TEST_F(MountPoints, AreMadeInMountsAlone) {
  make({{data_, "/workspace/a/b"}, {file_, "/workspace/a/c"}, {data_, "/elsewhere/d"}},
       {"/workspace/memory", "/tmp"});
  EXPECT_TRUE(fs::is_directory(project_ / "a/b"));
  EXPECT_TRUE(fs::is_regular_file(project_ / "a/c"));
  EXPECT_TRUE(fs::is_directory(project_ / "memory"));
  EXPECT_EQ(std::distance(fs::directory_iterator(project_), fs::directory_iterator()), 2);
}

TEST_F(MountPoints, OfMountsInMounts) {
  make({{data_, "/workspace/data"}, {outside_, "/workspace/data/inner"}});
  EXPECT_TRUE(fs::is_directory(project_ / "data"));
  EXPECT_TRUE(fs::is_directory(data_ / "inner"));
  EXPECT_TRUE(is_empty(project_ / "data"));
}

TEST_F(MountPoints, AreNotMadeWhereLinksLeadOnTheHost) {
  fs::create_directory_symlink(outside_, project_ / "link");
  fs::create_directory_symlink("../outside", project_ / "relative");
  fs::create_directory_symlink("loop", project_ / "loop");
  make({{data_, "/workspace/link/a"},
        {data_, "/workspace/relative/b"},
        {data_, "/workspace/loop/c"}},
       {"/workspace/link/memory"});
  EXPECT_TRUE(is_empty(outside_));
}

TEST_F(MountPoints, AreMadeWhereLinksLeadInTheContainer) {
  fs::create_directory_symlink("/workspace/real", project_ / "link");
  fs::create_directory_symlink("../data/x", project_ / "other");
  make({{data_, "/workspace/link/a"}, {data_, "/data"}, {outside_, "/workspace/other/b"}});
  EXPECT_TRUE(fs::is_directory(project_ / "real/a"));
  EXPECT_TRUE(fs::is_directory(data_ / "x/b"));
}

TEST_F(MountPoints, InMemoryAreTheRuntimes) {
  make({{data_, "/workspace/memory/a"}}, {"/workspace/memory"});
  EXPECT_TRUE(is_empty(project_ / "memory"));
}

TEST_F(MountPoints, GoIntoThrowawayLayers) {
  make({{data_, "/workspace/a/b"}}, {}, false, outside_);
  EXPECT_TRUE(is_empty(project_));
  EXPECT_TRUE(fs::is_directory(outside_ / "a/b"));
}

TEST_F(MountPoints, LeaveFoldersOfLayersAsTheyAreBelow) {
  fs::create_directories(project_ / "a/b");
  fs::permissions(project_ / "a", fs::perms{0750});
  fs::permissions(project_ / "a/b", fs::perms{01777});
  make({{data_, "/workspace/a/b/c/d"}}, {}, false, outside_);
  const auto mode = [](const fs::path& path) {
    return static_cast<unsigned>(fs::status(path).permissions());
  };
  EXPECT_EQ(mode(outside_ / "a"), 0750U);
  EXPECT_EQ(mode(outside_ / "a/b"), 01777U);
  EXPECT_TRUE(fs::is_directory(outside_ / "a/b/c/d"));
}

TEST_F(MountPoints, CannotBeMadeInWhatIsReadOnly) {
  EXPECT_EQ(code_of([&] { make({{data_, "/workspace/a"}}, {}, true); }), "bad-mount");
  EXPECT_EQ(code_of([&] { make({}, {"/workspace/a"}, true); }), "bad-mount");
  fs::create_directory(project_ / "a");
  make({{data_, "/workspace/a"}}, {}, true);
}

TEST_F(MountPoints, OfReadOnlyMountsThatALinkLeadsTo) {
  fs::create_directory_symlink(data_, folder_.path() / "link");
  const std::string below = (fs::canonical(data_) / "below").string();
  const std::vector<Mount> mounts =
      with_mounts_below({{folder_.path() / "link", "/d", true}}, {"/", below});
  ASSERT_EQ(mounts.size(), 2U);
  EXPECT_EQ(mounts[1].source, below);
  EXPECT_EQ(mounts[1].target, "/d/below");
}

TEST(EngineWords, SayWhatIsWrong) {
  const auto code = [](std::string_view words) {
    return container_not_started("docker", words).code();
  };
  EXPECT_EQ(code("docker: Error response from daemon: failed to create shim: runc create failed: "
                 "error mounting \"/a\" to rootfs at \"/etc/passwd\": not a directory: unknown."),
            "bad-mount");
  EXPECT_EQ(code("Error: crun: mount `/a` to `etc/passwd`: Not a directory: OCI runtime error"),
            "bad-mount");
  EXPECT_EQ(code("Error: listen tcp4 127.0.0.1:80: bind: address already in use"), "port-taken");
  EXPECT_EQ(code("Error: slirp4netns failed: \"open(\"/dev/net/tun\"): Permission denied\""),
            "no-network");
  // Neither is about what the person mounts.
  EXPECT_EQ(code("Error: runc: cannot find cgroup mount destination: OCI runtime error"),
            "run-failed");
  EXPECT_EQ(code("Error: cannot open /tmp/mount-1/state: permission denied"), "run-failed");
  EXPECT_EQ(code(""), "run-failed");
}

}  // namespace
}  // namespace mlenv
