// An image as an ext4 disk; e2fsck and debugfs, which are not ours, say what is on it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <functional>
#include <map>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/process.hpp"
#include "base/progress.hpp"
#include "runner/vm/disk/ext4_writer.hpp"
#include "runner/vm/disk/image_disk.hpp"
#include "runner/vm/disk/layer_merge.hpp"
#include "runner/vm/disk/scratch_disk.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv::test {
namespace {

constexpr std::chrono::seconds kLongMaking{600};

Captured run(std::vector<std::string> argv) {
  Command command{Purpose{"test"}};
  command.argv = std::move(argv);
  return run_captured(std::move(command), kLongMaking);
}
std::string debugfs(const fs::path& disk, const std::string& request) {
  return run({"/sbin/debugfs", "-R", request, disk.string()}).out;
}
void expect_sound(const fs::path& disk) {
  const Captured checked = run({"/sbin/e2fsck", "-fn", disk.string()});
  EXPECT_EQ(checked.exit.code, 0) << checked.out << checked.err;
}

/// What is no zero in a file with holes: each block of 4096 bytes by its offset.
std::map<off_t, std::string> blocks_of(const fs::path& path) {
  constexpr off_t kBlock = 4096;
  const Fd file = open_file(path, O_RDONLY | O_CLOEXEC);
  std::map<off_t, std::string> blocks;
  for (off_t at = 0; (at = ::lseek(file.get(), at, SEEK_DATA)) >= 0; at += kBlock) {
    at -= at % kBlock;
    std::string block(kBlock, '\0');
    const ssize_t got = ::pread(file.get(), block.data(), block.size(), at);
    EXPECT_GT(got, 0) << path;
    if (block.find_first_not_of('\0') != std::string::npos) blocks[at] = std::move(block);
  }
  return blocks;
}

TestEntry whiteout(const std::string& path) { return test_file(path, ""); }

class Disk : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists("/sbin/e2fsck")) GTEST_SKIP() << "e2fsprogs is not installed";
  }
  fs::path disk_of(const std::vector<std::vector<TestEntry>>& layers, const char* name = "disk") {
    Image image = random_image(store_, 1, 1);
    image.layers.clear();
    for (const auto& entries : layers) {
      image.layers.push_back(put_layer(store_, test_tar(entries), "layer"));
    }
    fs::path path = folder_.path() / name;
    QuietProgress progress;
    write_image_disk(store_, image, path, progress);
    return path;
  }
  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
};

TEST_F(Disk, HasWhatALayerHas) {
  std::string large(5'000'000, 'x');
  large[4'000'000] = 'y';
  TestEntry owned = test_file("a/owned", "hello", 04755);
  owned.entry.uid = 70000;
  owned.entry.gid = 5;
  owned.entry.mtime = 1'000'000'000;
  const fs::path disk =
      disk_of({{test_folder("a", 0700), owned, test_file("large", large),
                test_symlink("link", "a/owned"), test_hardlink("second", "large"),
                test_symlink("long", std::string(200, 'l')), test_file("empty", "")}});
  expect_sound(disk);
  EXPECT_EQ(debugfs(disk, "cat /a/owned"), "hello");
  EXPECT_EQ(debugfs(disk, "cat /large"), large);
  EXPECT_EQ(debugfs(disk, "cat /second"), large);
  const std::string status = debugfs(disk, "stat /a/owned");
  EXPECT_NE(status.find("Mode:  04755"), std::string::npos) << status;
  EXPECT_NE(status.find("User: 70000"), std::string::npos) << status;
  EXPECT_NE(status.find("Group:     5"), std::string::npos) << status;
  EXPECT_NE(status.find("mtime: 0x3b9aca00"), std::string::npos) << status;
  EXPECT_NE(debugfs(disk, "stat /a").find("Mode:  0700"), std::string::npos);
  EXPECT_NE(debugfs(disk, "stat /link").find("Fast link dest: \"a/owned\""), std::string::npos);
}

TEST_F(Disk, ShowsLayersOverOneAnother) {
  const fs::path disk = disk_of(
      {{test_folder("kept", 0711), test_file("kept/old", "old"), test_file("kept/gone", "gone"),
        test_folder("opaque"), test_file("opaque/below", "below"), test_file("file", "one"),
        test_folder("was-folder"), test_file("was-folder/in", "in"), test_file("target", "data"),
        test_hardlink("alias", "target")},
       {test_file("kept/new", "new"), whiteout("kept/.wh.gone"), whiteout("opaque/.wh..wh..opq"),
        test_file("opaque/above", "above"), test_file("file", "two"), whiteout(".wh.target"),
        test_file("was-folder", "now a file")}});
  expect_sound(disk);
  EXPECT_EQ(debugfs(disk, "cat /kept/old"), "old");
  EXPECT_EQ(debugfs(disk, "cat /kept/new"), "new");
  EXPECT_EQ(debugfs(disk, "cat /kept/gone"), "");
  EXPECT_EQ(debugfs(disk, "cat /opaque/below"), "");
  EXPECT_EQ(debugfs(disk, "cat /opaque/above"), "above");
  EXPECT_EQ(debugfs(disk, "cat /file"), "two");
  EXPECT_EQ(debugfs(disk, "cat /was-folder"), "now a file");
  EXPECT_EQ(debugfs(disk, "cat /target"), "");
  EXPECT_EQ(debugfs(disk, "cat /alias"), "data");
  // The upper layer implies the folder; the lower one says what it is like.
  EXPECT_NE(debugfs(disk, "stat /kept").find("Mode:  0711"), std::string::npos);
}

TEST_F(Disk, KeepsOtherNamesOfWhatIsHidden) {
  const fs::path disk =
      disk_of({{test_file("a", "data"), test_hardlink("b", "a"), test_hardlink("c", "b"),
                test_symlink("l", "somewhere"), test_hardlink("m", "l"), test_file("x", "x"),
                test_hardlink("y", "x"), test_file("y", "later")},
               {whiteout(".wh.a"), whiteout(".wh.b"), whiteout(".wh.l"), whiteout(".wh.x")}});
  expect_sound(disk);
  EXPECT_EQ(debugfs(disk, "cat /c"), "data");
  EXPECT_NE(debugfs(disk, "stat /m").find("Fast link dest: \"somewhere\""), std::string::npos);
  EXPECT_EQ(debugfs(disk, "cat /y"), "later");
}

TEST_F(Disk, HardLinksToLinksAreLinks) {
  const fs::path disk = disk_of({{test_symlink("a", std::string(200, 'l')), test_hardlink("b", "a"),
                                  test_symlink("c", std::string(200, 'l')), test_file("c", "d")}});
  expect_sound(disk);
  EXPECT_EQ(debugfs(disk, "cat /c"), "d");
}

TEST_F(Disk, HardLinksLeadSomewhere) {
  EXPECT_EQ(code_of([&] { disk_of({{test_hardlink("a", "absent")}}); }), "bad-layer");
}

TEST_F(Disk, OfTwoEntriesOfOneLayerTheLaterOneCounts) {
  const fs::path disk = disk_of({{test_file("a", std::string(100'000, 'a')), test_file("a", "b")}});
  expect_sound(disk);
  EXPECT_EQ(debugfs(disk, "cat /a"), "b");
}

TEST_F(Disk, ManyNamesInOneFolder) {
  std::vector<TestEntry> entries;
  for (int i = 0; i < 1000; ++i) entries.push_back(test_file("d/" + std::to_string(i), "x"));
  expect_sound(disk_of({entries}));
}

TEST_F(Disk, IsTheSameForTheSameImage) {
  const std::vector<std::vector<TestEntry>> layers{{test_file("a", "b"), test_symlink("c", "a")}};
  const fs::path one = disk_of(layers, "one");
  const fs::path two = disk_of(layers, "two");
  EXPECT_EQ(fs::file_size(one), fs::file_size(two));
  const auto blocks = blocks_of(one);
  EXPECT_GT(blocks.size(), 5U);
  EXPECT_TRUE(blocks == blocks_of(two));
}

TEST_F(Disk, ThatIsNoWholeDiskOfTheImageIsMadeAnew) {
  const Image image = random_image(store_, 1, 1);
  QuietProgress progress;
  const fs::path disk = provide_image_disk(store_, image, progress);
  const auto size = fs::file_size(disk);
  const auto inode = [&] {
    struct stat status {};
    return ::lstat(disk.c_str(), &status) == 0 ? status.st_ino : 0;
  };
  const ino_t first = inode();
  EXPECT_EQ(provide_image_disk(store_, image, progress), disk);
  EXPECT_EQ(inode(), first) << "a whole one is used as it is";
  const fs::path elsewhere = folder_.path() / "elsewhere";
  write_file(elsewhere, "secret");
  const std::vector<std::function<void()>> damages = {
      [&] { fs::resize_file(disk, size - 4096); },
      [&] { fs::resize_file(disk, 0); },
      [&] { write_file(disk, std::string("QFI\xfb\0\0\0\3", 8) + std::string(4096, '\0')); },
      [&] { fs::resize_file(disk, std::uintmax_t{1} << 40U); },
      [&] { fs::create_symlink(elsewhere, disk); },
      [&] { fs::create_symlink("/dev/zero", disk); },
      [&] { ASSERT_EQ(::mkfifo(disk.c_str(), 0600), 0); },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    if (i > 3) fs::remove(disk);
    damages[i]();
    EXPECT_EQ(provide_image_disk(store_, image, progress), disk);
    EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(disk))) << i;
    EXPECT_EQ(fs::file_size(disk), size) << i;
  }
  expect_sound(disk);
  EXPECT_EQ(read_file(elsewhere), "secret");
}

TEST_F(Disk, ThatIsTooSmallIsFull) {
  constexpr std::uint64_t kSmall = std::uint64_t{16} << 20U;
  Ext4Writer disk{folder_.path() / "small", kSmall, Digest::of("a")};
  TestEntry large = test_file("large", std::string(2 * kSmall, 'x'));
  large.entry.size_bytes = large.content.size();
  MemorySource data{as_bytes(large.content)};
  EXPECT_EQ(code_of([&] { disk.add_file(Ext4Writer::kRoot, "large", large.entry, data); }),
            "disk-full");
}

TEST_F(Disk, TakesNoNameThatIsTooLong) {
  constexpr std::uint64_t kSmall = std::uint64_t{16} << 20U;
  Ext4Writer disk{folder_.path() / "small", kSmall, Digest::of("a")};
  MemorySource data{ByteView{}};
  EXPECT_EQ(code_of([&] {
              disk.add_file(Ext4Writer::kRoot, std::string(300, 'n'), test_file("x", "").entry,
                            data);
            }),
            "disk-write");
}

TEST(LayerMerge, HidesForLowerLayersAlone) {
  using Kind = LayerMerge::Kind;
  LayerMerge merge;
  merge.begin_layer();
  merge.hide("a");
  EXPECT_TRUE(merge.shows("a", Kind::other));
  merge.begin_layer();
  EXPECT_FALSE(merge.shows("a", Kind::other));
  EXPECT_FALSE(merge.shows("a/b/c", Kind::other));
  EXPECT_TRUE(merge.shows("ab", Kind::other));
}

TEST_F(Disk, ToWriteToIsEmptyAndHasNoName) {
  constexpr std::uint64_t kSize = std::uint64_t{3} << 30U;
  constexpr std::uint64_t kBlock = 512;  // of stat(2)
  const TemporaryFolder own{folder_.path()};
  const Fd file = make_scratch_disk(own.path(), kSize);
  EXPECT_TRUE(list_folder(own.path()).empty());
  struct stat status {};
  ASSERT_EQ(::fstat(file.get(), &status), 0);
  EXPECT_EQ(static_cast<std::uint64_t>(status.st_size), kSize);
  EXPECT_EQ(status.st_nlink, 0U);
  EXPECT_LT(static_cast<std::uint64_t>(status.st_blocks) * kBlock, kSize / 1000);
  const fs::path disk = fmt::format("/proc/{}/fd/{}", ::getpid(), file.get());
  expect_sound(disk);
  EXPECT_NE(debugfs(disk, "ls -p /").find("/2/040755/0/0/./"), std::string::npos);
}

TEST_F(Disk, ToWriteToIsMostOfWhatIsFree) {
  const std::uint64_t free = free_bytes(folder_.path());
  const std::uint64_t usual = usual_scratch_bytes(folder_.path());
  EXPECT_GE(usual, kLeastScratch);
  EXPECT_LE(usual, std::max(free, kLeastScratch));
  EXPECT_EQ(code_of([&] { (void)free_bytes(folder_.path() / "absent"); }), "absent");
}

}  // namespace
}  // namespace mlenv::test
