#include "images/unpack.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.hpp"
#include "images/tree_writer.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

TestEntry test_node(std::string path, TarEntry::Type type, std::uint32_t major,
                    std::uint32_t minor) {
  TestEntry out = test_file(std::move(path), "");
  out.entry.type = type;
  out.entry.device_major = major;
  out.entry.device_minor = minor;
  return out;
}

struct stat status_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
  return status;
}

unsigned mode_of(const fs::path& path) { return status_of(path).st_mode & 07777U; }

class UnpackTest : public testing::Test {
 protected:
  fs::path unpack(const std::vector<TestEntry>& entries) {
    return unpack_layer(store_, put_layer(store_, test_tar(entries), "test"), quiet_);
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  QuietProgress quiet_;
};

TEST_F(UnpackTest, AllKindsOfEntries) {
  const std::string large(3'000'000, 'x');
  const fs::path root = unpack({
      test_folder("bin", 0755),
      test_file("bin/tool", "#!", 04755),
      test_hardlink("bin/alias", "bin/tool"),
      test_symlink("bin/link", "/absolute/../target"),
      test_folder("closed", 0555),
      test_file("closed/file", "inside", 0400),
      test_folder("shared", 03775),
      test_file("shared/empty", "", 0666),
      test_file("no/parents/given", "deep"),
      test_file("large", large),
      test_node("pipe", TarEntry::Type::fifo, 0, 0),
  });
  EXPECT_EQ(mode_of(root / "bin/tool"), 04755U);
  EXPECT_EQ(status_of(root / "bin/tool").st_ino, status_of(root / "bin/alias").st_ino);
  EXPECT_EQ(fs::read_symlink(root / "bin/link"), "/absolute/../target");
  EXPECT_EQ(mode_of(root / "closed"), 0555U);
  EXPECT_EQ(mode_of(root / "closed/file"), 0400U);
  EXPECT_EQ(mode_of(root / "shared"), 03775U);
  EXPECT_EQ(mode_of(root / "shared/empty"), 0666U) << "whatever the umask";
  EXPECT_EQ(mode_of(root / "no/parents"), 0755U);
  EXPECT_EQ(mode_of(root), 0755U);
  EXPECT_EQ(read_file(root / "no/parents/given"), "deep");
  EXPECT_EQ(read_file(root / "large"), large);
  EXPECT_TRUE(S_ISFIFO(status_of(root / "pipe").st_mode));
  for (const char* path : {"bin", "bin/tool", "bin/link", "closed", "shared", "large"}) {
    EXPECT_EQ(status_of(root / path).st_mtime, 1'700'000'000) << path;
  }
  EXPECT_EQ(status_of(root / "no").st_mtime, 0);
  EXPECT_TRUE(store_.verify(false, {}).empty());
}

TEST_F(UnpackTest, UnderAnyUmask) {
  const mode_t before = ::umask(077);
  const fs::path root = unpack({test_folder("a", 0755), test_file("a/b", "", 0644)});
  ::umask(before);
  EXPECT_EQ(mode_of(root / "a"), 0755U);
  EXPECT_EQ(mode_of(root / "a/b"), 0644U);
  EXPECT_EQ(mode_of(root), 0755U);
}

TEST_F(UnpackTest, OwnersAndDevicesWhenRoot) {
  if (::geteuid() != 0) GTEST_SKIP() << "owners need root";
  std::vector<TestEntry> entries{test_folder("a", 02755), test_file("a/setuid", "x", 06755),
                                 test_symlink("link", "a"),
                                 test_node("null", TarEntry::Type::char_device, 1, 3)};
  for (TestEntry& entry : entries) {
    entry.entry.uid = 33;
    entry.entry.gid = 44;
  }
  entries.push_back(test_file("a/plain", "x"));
  const fs::path root = unpack(entries);
  for (const char* path : {"a", "a/setuid", "link"}) {
    EXPECT_EQ(status_of(root / path).st_uid, 33U) << path;
    EXPECT_EQ(status_of(root / path).st_gid, 44U) << path;
  }
  EXPECT_EQ(mode_of(root / "a/setuid"), 06755U) << "chown clears these bits";
  EXPECT_EQ(status_of(root / "a/plain").st_gid, 0U) << "not the setgid folder's";
  if (fs::exists(fs::symlink_status(root / "null"))) {
    EXPECT_EQ(status_of(root / "null").st_rdev, ::makedev(1, 3));
  }
}

TEST_F(UnpackTest, LaterEntriesReplaceEarlierOnes) {
  const fs::path root = unpack({
      test_file("file", "first"),
      test_file("file", "second"),
      test_folder("dir"),
      test_folder("dir/sub", 0500),
      test_file("dir/sub/file", "x"),
      test_symlink("dir", "elsewhere"),
      test_folder("elsewhere", 0711),
      test_symlink("becomes", "nothing"),
      test_folder("becomes", 0750),
      test_file("becomes/file", "y"),
      test_folder("elsewhere", 0700),
  });
  EXPECT_EQ(read_file(root / "file"), "second");
  EXPECT_EQ(fs::read_symlink(root / "dir"), "elsewhere");
  EXPECT_EQ(mode_of(root / "elsewhere"), 0700U);
  EXPECT_EQ(mode_of(root / "becomes"), 0750U);
  EXPECT_EQ(read_file(root / "becomes/file"), "y");
  EXPECT_EQ(list_folder(root / "elsewhere").size(), 0U);
}

TEST_F(UnpackTest, LinksInsideTheTreeAreFollowedForParents) {
  const fs::path root = unpack({
      test_folder("usr"),
      test_folder("usr/lib"),
      test_symlink("lib", "usr/lib"),
      test_file("lib/one", "1"),
      test_folder("usr/share"),
      test_symlink("usr/share/up", "../lib"),
      test_file("usr/share/up/two", "2"),
  });
  EXPECT_EQ(read_file(root / "usr/lib/one"), "1");
  EXPECT_EQ(read_file(root / "usr/lib/two"), "2");
}

TEST_F(UnpackTest, NothingLeavesTheTree) {
  const fs::path outside = folder_.path() / "outside";
  make_folders(outside);
  const auto stays_empty = [&](const std::vector<TestEntry>& entries) {
    try {
      unpack(entries);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == "bad-layer" || error.code() == "bad-tar") << error.what();
    }
    EXPECT_TRUE(list_folder(outside).empty());
    EXPECT_EQ(mode_of(outside) & 0022U, mode_of(folder_.path()) & 0022U);
  };
  std::string up = "..";
  for (int i = 0; i < 12; ++i) up += "/..";
  stays_empty({test_symlink("a", outside.string()), test_file("a/file", "x")});
  stays_empty({test_symlink("a", up + outside.string()), test_file("a/file", "x")});
  stays_empty({test_folder("d"), test_symlink("d/a", "../../.."), test_folder("d/a/x")});
  stays_empty({test_file("../outside/file", "x")});
  stays_empty({test_file("d/../../outside/file", "x")});
  stays_empty({test_symlink("a", outside.string()), test_hardlink("b", "a/file")});
  stays_empty({test_hardlink("b", "../outside")});
  stays_empty({test_hardlink("b", "absent")});
  stays_empty({test_symlink("a", outside.string()), test_file("a/.wh..wh..opq", "")});
  stays_empty({test_symlink("a", outside.string()), test_file("a/.wh.x", "")});
}

TEST_F(UnpackTest, AReplacedFolderIsNotSettledElsewhere) {
  const fs::path outside = folder_.path() / "outside";
  make_folders(outside / "sub");
  fs::permissions(outside / "sub", fs::perms::owner_all);
  unpack({test_folder("a"), test_folder("a/sub", 0777), test_symlink("a", outside.string())});
  EXPECT_EQ(mode_of(outside / "sub"), 0700U);
}

TEST_F(UnpackTest, WhiteoutsBecomeOverlayfsMarks) {
  const fs::path root = unpack({
      test_folder("dir"),
      test_file("dir/.wh.gone", ""),
      test_file(".wh.top", ""),
      test_folder("opaque"),
      test_file("opaque/.wh..wh..opq", ""),
      test_file("opaque/new", "x"),
      test_folder("again"),
      test_file(".wh.again", ""),
  });
  for (const char* path : {"dir/gone", "top"}) {
    EXPECT_TRUE(S_ISCHR(status_of(root / path).st_mode)) << path;
    EXPECT_EQ(status_of(root / path).st_rdev, 0U) << path;
  }
  EXPECT_FALSE(fs::exists(root / "dir/.wh.gone"));
  for (const char* path : {"opaque", "again"}) {
    char value = 0;
    EXPECT_EQ(::getxattr((root / path).c_str(), "user.overlay.opaque", &value, 1), 1) << path;
    EXPECT_EQ(value, 'y');
  }
  EXPECT_EQ(read_file(root / "opaque/new"), "x");
}

TEST_F(UnpackTest, OverlayfsAttributesOfALayerAreNotTaken) {
  TestEntry folder = test_folder("a");
  folder.entry.xattrs = {{"user.overlay.opaque", "y"}, {"user.kept", "value"}};
  const fs::path root = unpack({folder});
  EXPECT_LT(::getxattr((root / "a").c_str(), "user.overlay.opaque", nullptr, 0), 0);
  EXPECT_EQ(::getxattr((root / "a").c_str(), "user.kept", nullptr, 0), 5);
}

TEST_F(UnpackTest, ALayerThatIsNotWhatItsImageSays) {
  Layer layer = put_layer(store_, test_tar({test_file("a", "b")}), "torch");
  layer.diff_id = Digest::of("something else");
  try {
    unpack_layer(store_, layer, quiet_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "damaged");
    EXPECT_EQ(error.frames().front(), "unpacking the layer `torch`");
  }
  EXPECT_EQ(list_folder(unpack({})).size(), 0U) << "an empty layer is one";
}

TEST_F(UnpackTest, TruncatedLayers) {
  const std::string tar = test_tar({test_file("a", std::string(100'000, 'x'))});
  const std::string blob = test_gzip(tar);
  for (const std::size_t size : {blob.size() - 4, blob.size() / 2, std::size_t{5}}) {
    const Digest digest = store_.put(std::string_view(blob).substr(0, size));
    const Layer layer{{std::string(kLayerGzipType), digest, size}, Digest::of(tar), 0, "x"};
    EXPECT_THROW(unpack_layer(store_, layer, quiet_), Error);
  }
  EXPECT_TRUE(list_folder(store_.root() / "trees").empty());
}

TEST_F(UnpackTest, ImagesComeBottomFirstAndOnce) {
  Image image = random_image(store_, 9, 3);
  image.layers.push_back(image.layers[0]);
  const auto trees = unpack_image(store_, image, quiet_);
  ASSERT_EQ(trees.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(trees[i], store_.root() / "trees" / image.layers[i].diff_id.hex() / "fs");
    EXPECT_TRUE(fs::is_directory(trees[i] / "opt" / ("layer" + std::to_string(i % 3))));
  }
  EXPECT_EQ(unpack_image(store_, image, quiet_), trees);
}

TEST_F(UnpackTest, BuildersWriteTheSameTreeAsUnpacking) {
  const fs::path unpacked =
      unpack({test_folder("a"), test_file("a/b", "content", 0755), test_symlink("a/c", "b")});
  const fs::path built = folder_.path() / "built";
  make_folders(built);
  TreeWriter writer{built};
  writer.add_folder("a", {.mode = 0755, .mtime = 1'700'000'000});
  writer.begin_file("a/b", {.mode = 0755, .mtime = 1'700'000'000}, 7);
  writer.write(as_bytes("con"));
  writer.write(as_bytes("tent"));
  writer.end_file();
  writer.add_symlink("a/c", "b", {.mtime = 1'700'000'000});
  writer.finish();
  for (const char* path : {"a", "a/b", "a/c"}) {
    const struct stat one = status_of(unpacked / path);
    const struct stat two = status_of(built / path);
    EXPECT_EQ(one.st_mode, two.st_mode) << path;
    EXPECT_EQ(one.st_mtime, two.st_mtime) << path;
  }
  EXPECT_EQ(read_file(built / "a/b"), "content");
}

}  // namespace
}  // namespace mlenv
