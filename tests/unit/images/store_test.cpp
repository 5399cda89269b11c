#include "images/store.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "base/process.hpp"
#include "base/progress.hpp"
#include "images/unpack.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

std::string read_from(const Store& store, const Digest& digest, std::uint64_t offset = 0) {
  const auto source = store.open(digest, offset);
  return read_all(*source, 1U << 30U);
}

/// Changes one byte in the middle of a file, keeping its size.
void damage_file(const fs::path& path, std::uint64_t at) {
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
  ASSERT_TRUE(file.good());
}

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_ino;
}

std::size_t count_files(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator{folder}) {
    if (entry.is_regular_file()) ++count;
  }
  return count;
}

class StoreTest : public testing::Test {
 protected:
  /// As after a power cut: everything unsynced was so in another boot.
  void reboot() {
    for (const fs::path& boot : list_folder(root() / "unsynced")) {
      fs::rename(boot, root() / "unsynced" / "11111111-1111-1111-1111-111111111111");
    }
  }
  static std::vector<Store::Damage> verify(const Store& store, bool repair = false) {
    return store.verify(repair, [](std::string_view) {});
  }
  fs::path root() const { return folder_.path() / "store"; }
  fs::path blob(const Digest& digest) const { return root() / "blobs" / digest.hex(); }

  TemporaryFolder folder_{temporary_root()};
  QuietProgress quiet_;
};

TEST_F(StoreTest, KeepsWhatIsPut) {
  Store store{root()};
  const Digest digest = store.put("hello");
  EXPECT_EQ(digest, Digest::of("hello"));
  EXPECT_EQ(store.put("hello"), digest);
  EXPECT_TRUE(store.has(digest));
  EXPECT_EQ(store.size_of(digest), 5U);
  EXPECT_EQ(store.read(digest), "hello");
  EXPECT_EQ(read_from(store, digest, 2), "llo");
  EXPECT_EQ(read_from(store, digest, 5), "");
  EXPECT_EQ(read_from(store, digest, 50), "");
  EXPECT_EQ(read_file(store.path_of(digest).value()), "hello");
  EXPECT_EQ(Store{root()}.read(digest), "hello");
  EXPECT_TRUE(verify(store).empty());
}

TEST_F(StoreTest, SaysWhatIsAbsent) {
  const Store store{root()};
  const Digest digest = Digest::of("nothing");
  EXPECT_FALSE(store.has(digest));
  EXPECT_EQ(store.size_of(digest), std::nullopt);
  EXPECT_EQ(store.path_of(digest), std::nullopt);
  EXPECT_EQ(store.find_tree(digest), std::nullopt);
  EXPECT_EQ(store.find_key(digest), std::nullopt);
  EXPECT_EQ(store.find_image("nothing"), std::nullopt);
  EXPECT_EQ(code_of([&] { store.open(digest); }), "absent");
  EXPECT_EQ(code_of([&] { (void)store.image(digest); }), "absent");
  EXPECT_EQ(code_of([&] { Store{root()}.tag(Reference::parse("a"), digest); }), "absent");
}

TEST_F(StoreTest, ReadingVerifies) {
  Store store{root()};
  const Digest digest = store.put("some content");
  damage_file(blob(digest), 3);
  EXPECT_EQ(code_of([&] { (void)store.read(digest); }), "damaged");
}

TEST_F(StoreTest, StagedFilesAppearOnlyWhenCommitted) {
  Store store{root()};
  {
    const Store::Staged forgotten = store.stage();
    write_all(forgotten.fd(), as_bytes("forgotten"));
  }
  Store::Staged first = store.stage();
  Store::Staged second = store.stage();
  write_all(first.fd(), as_bytes("content"));
  write_all(second.fd(), as_bytes("content"));
  const Digest digest = Digest::of("content");
  EXPECT_FALSE(store.has(digest));
  first.commit(digest);
  const auto written = fs::last_write_time(blob(digest));
  second.commit(digest);
  EXPECT_EQ(fs::last_write_time(blob(digest)), written);
  EXPECT_EQ(store.read(digest), "content");
  EXPECT_EQ(count_files(root() / "blobs"), 1U);
  EXPECT_EQ(count_files(root() / "tmp"), 1U) << "only the lock of the work folder";
}

TEST_F(StoreTest, SplicedLayersReadLikeWholeOnes) {
  Store store{root()};
  std::string content;
  std::mt19937 dice{7};
  for (int i = 0; i < 300'000; ++i) content.push_back(static_cast<char>(dice()));
  // Some tiny pieces, some larger than any buffer.
  std::string wheel;
  Spliced spliced;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t limit = dice() % 50 == 0 ? 100'000 : 700;
    const std::size_t length = std::min<std::size_t>(content.size() - at, 1 + dice() % limit);
    const bool literal = dice() % 2 == 0;
    std::string& home = literal ? spliced.literals : wheel;
    spliced.pieces.push_back({std::nullopt, home.size(), length});
    if (!literal) spliced.pieces.back().blob = Digest::of("wheel");
    home += content.substr(at, length);
    if (!literal && dice() % 2 == 0) wheel += "between";
    at += length;
  }
  const Digest wheel_digest = store.put(wheel);
  for (Piece& piece : spliced.pieces) {
    if (piece.blob) piece.blob = wheel_digest;
  }
  const Digest digest = Digest::of(content);
  store.put_spliced(digest, content.size(), spliced);
  store.put_spliced(digest, content.size(), spliced);

  EXPECT_TRUE(store.has(digest));
  EXPECT_EQ(store.size_of(digest), content.size());
  EXPECT_EQ(store.path_of(digest), std::nullopt);
  EXPECT_EQ(store.read(digest), content);
  for (int i = 0; i < 200; ++i) {
    const std::size_t offset = dice() % (content.size() + 10);
    Bytes part(1 + dice() % 5000);
    const auto source = store.open(digest, offset);
    const std::size_t count = source->read(part);
    const std::string wanted =
        offset < content.size() ? content.substr(offset, part.size()) : std::string{};
    ASSERT_EQ(count, wanted.size()) << "a read fills its buffer";
    ASSERT_EQ(as_text(ByteView{part}.first(count)), wanted);
  }
  EXPECT_TRUE(verify(store).empty());

  fs::remove(blob(wheel_digest));
  EXPECT_FALSE(store.has(digest));
  EXPECT_EQ(code_of([&] { store.open(digest); }), "absent");
}

TEST_F(StoreTest, RefusesSlicesThatCannotBeRead) {
  Store store{root()};
  const Digest wheel = store.put("0123456789");
  const Digest digest = Digest::of("anything");
  EXPECT_EQ(code_of([&] { store.put_spliced(digest, 5, {"", {{wheel, 6, 5}}}); }), "bad-layer");
  EXPECT_EQ(code_of([&] {
              store.put_spliced(digest, 5, {"ab", {{std::nullopt, 1, 2}}});
            }),
            "bad-layer");
  EXPECT_EQ(code_of([&] { store.put_spliced(digest, 6, {"", {{wheel, 0, 5}}}); }), "bad-layer");
  EXPECT_EQ(code_of([&] {
              store.put_spliced(digest, 1, {"", {{Digest::of("?"), 0, 1}}});
            }),
            "absent");
  EXPECT_EQ(code_of([&] { store.put_spliced(digest, 1, {"", {{wheel, ~0ULL, 1}}}); }), "bad-layer");
  EXPECT_FALSE(store.has(digest));
  EXPECT_TRUE(verify(store).empty());
}

TEST_F(StoreTest, KeysAreFoundUntilTheyAreDamaged) {
  Store store{root()};
  const Digest key = Digest::of("inputs");
  store.put_key(key, "first");
  store.put_key(key, "sha256:result\nand more\n");
  EXPECT_EQ(store.find_key(key), "sha256:result\nand more\n");
  const fs::path file = root() / "keys" / key.hex();
  EXPECT_TRUE(verify(store).empty());
  for (const std::string& torn : {std::string{}, std::string(100, '\0'), read_file(file) + "x",
                                  read_file(file).substr(0, 70)}) {
    write_file(file, torn);
    EXPECT_EQ(store.find_key(key), std::nullopt);
  }
  ASSERT_EQ(verify(store, true).size(), 1U);
  EXPECT_TRUE(verify(store).empty());
}

TEST_F(StoreTest, TreesArePublishedWhole) {
  Store store{root()};
  const Digest digest = Digest::of("tar");
  fs::path forgotten;
  {
    const Store::StagedTree tree = store.stage_tree();
    forgotten = tree.fs_path();
    write_file(forgotten / "file", "x");
    fs::permissions(forgotten, fs::perms::owner_read);
  }
  EXPECT_FALSE(fs::exists(forgotten));

  Store::StagedTree tree = store.stage_tree();
  write_file(tree.fs_path() / "file", "first");
  EXPECT_EQ(store.find_tree(digest), std::nullopt);
  const fs::path path = tree.publish(digest);
  EXPECT_EQ(store.find_tree(digest), path);
  EXPECT_EQ(read_file(path / "file"), "first");

  Store::StagedTree again = store.stage_tree();
  write_file(again.fs_path() / "file", "second");
  EXPECT_EQ(again.publish(digest), path);
  EXPECT_EQ(read_file(path / "file"), "first");
}

TEST_F(StoreTest, NamesLeadToImages) {
  Store store{root()};
  const Image one = random_image(store, 1, 2);
  const Image two = random_image(store, 2, 3);
  store.tag(Reference::parse("jax-cpu"), one.digest());
  store.tag(Reference::parse("localhost:5000/team/jax:v1"), two.digest());
  store.tag(Reference::parse("other:old"), one.digest());
  store.tag(Reference::parse("other:old"), two.digest());

  std::vector<std::string> names;
  for (const Store::Name& name : store.names()) names.push_back(name.name);
  EXPECT_EQ(names, (std::vector<std::string>{"jax-cpu:latest", "localhost:5000/team/jax:v1",
                                             "other:old"}));
  EXPECT_EQ(store.find_image("jax-cpu"), one.digest());
  EXPECT_EQ(store.find_image("jax-cpu:latest"), one.digest());
  EXPECT_EQ(store.find_image("other:old"), two.digest());
  EXPECT_EQ(store.find_image("localhost:5000/team/jax:v1"), two.digest());
  EXPECT_EQ(store.find_image("jax-cpu:v2"), std::nullopt);
  EXPECT_EQ(store.find_image(one.digest().str()), one.digest());
  EXPECT_EQ(store.find_image(one.digest().hex()), one.digest());
  EXPECT_EQ(store.find_image(one.digest().hex().substr(0, 12)), one.digest());
  EXPECT_EQ(store.find_image(one.digest().hex().substr(0, 5)), std::nullopt);
  EXPECT_EQ(store.find_image("jax-cpu@" + one.digest().str()), one.digest());
  // Pulled by the digest of an index that leads to it.
  const std::string by_index = "localhost:5000/team/jax@" + Digest::of("an index").str();
  store.tag(Reference::parse(by_index), two.digest());
  EXPECT_EQ(store.find_image(by_index), two.digest());
  EXPECT_EQ(store.find_image(one.layers[0].blob.digest.str()), std::nullopt) << "no image";

  EXPECT_TRUE(store.untag(Reference::parse("jax-cpu")));
  EXPECT_FALSE(store.untag(Reference::parse("jax-cpu")));
  EXPECT_EQ(store.find_image("jax-cpu"), std::nullopt);
  EXPECT_EQ(store.find_image(one.digest().brief()), one.digest()) << "without a name, still there";
  EXPECT_EQ(store.image(one.digest()).layers.size(), 2U);
  EXPECT_TRUE(verify(store).empty());
}

TEST_F(StoreTest, SaysWhichImagesAPrefixMayMean) {
  Store store{root()};
  const Image image = random_image(store, 1, 1);
  // No two real digests that begin alike are at hand: a name may hold any.
  std::string near = image.digest().hex();
  near.back() = near.back() == '0' ? '1' : '0';
  store.tag(Reference::parse("one"), image.digest());
  write_file(root() / "names" / "two:latest", "sha256:" + near + "\n");
  EXPECT_EQ(code_of([&] { (void)store.find_image(near.substr(0, 20)); }), "ambiguous");
}

TEST_F(StoreTest, AnImageNeedsItsLayers) {
  Store store{root()};
  Store other{folder_.path() / "other"};
  const Image image = random_image(other, 1, 2);
  EXPECT_EQ(code_of([&] { store.put_image(image); }), "absent");
  EXPECT_FALSE(store.has(image.digest()));
}

TEST_F(StoreTest, AnImageSaysTheSizesOfItsLayers) {
  Store store{root()};
  const Image image = random_image(store, 1, 2);
  std::vector<Layer> layers = image.layers;
  for (const std::uint64_t wrong : {std::uint64_t{0}, layers[1].blob.size_bytes + 1}) {
    layers[1].blob.size_bytes = wrong;
    const Image lie = compose_image(image.settings, layers, 0);
    EXPECT_EQ(code_of([&] { store.put_image(lie); }), "bad-image");
    EXPECT_FALSE(store.has(lie.digest()));
  }
}

TEST_F(StoreTest, AManifestThatIsOnTheDiskIsNotWrittenAgain) {
  Store store{root()};
  const Image image = random_image(store, 1, 2);
  const fs::path path = blob(image.digest());
  const ino_t first = inode_of(path);
  store.put_image(image);
  EXPECT_EQ(inode_of(path), first);
  damage_file(path, 10);
  store.put_image(image);
  EXPECT_NE(inode_of(path), first);
  EXPECT_EQ(store.read(image.digest()), image.manifest);
  // As a layer is put, which is not waited for.
  fs::remove(path);
  store.put(image.manifest);
  const ino_t unsynced = inode_of(path);
  store.put_image(image);
  EXPECT_NE(inode_of(path), unsynced);
  store.sync();
  const ino_t synced = inode_of(path);
  store.put_image(image);
  EXPECT_EQ(inode_of(path), synced);
}

TEST_F(StoreTest, RefusesAStoreOfANewerProgram) {
  { const Store store{root()}; }
  write_file(root() / "version", "2\n");
  EXPECT_EQ(code_of([&] { Store{root()}; }), "store-version");
}

TEST_F(StoreTest, ATornVersionIsWrittenAnew) {
  const Digest kept = Store{root()}.put("kept");
  write_file(root() / "version", "");
  EXPECT_EQ(Store{root()}.read(kept), "kept");
  EXPECT_EQ(read_file(root() / "version"), "1\n");
}

TEST_F(StoreTest, TreesAreForTheirOwnerAlone) {
  { const Store store{root()}; }
  struct stat status {};
  ASSERT_EQ(::stat((root() / "trees").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U) << "they hold set-user-ID programs";
}

TEST_F(StoreTest, ADefaultAclOfAParentDoesNotReachWhatIsMade) {
  // A default ACL: user::rwx, user:0:rwx, group::r-x, mask::rwx, other::--- (acl(5), acl_ea.h).
  const std::string acl(
      "\x02\0\0\0"
      "\x01\0\x07\0\xFF\xFF\xFF\xFF"
      "\x02\0\x07\0\0\0\0\0"
      "\x04\0\x05\0\xFF\xFF\xFF\xFF"
      "\x10\0\x07\0\xFF\xFF\xFF\xFF"
      "\x20\0\0\0\xFF\xFF\xFF\xFF",
      44);
  if (::setxattr(folder_.path().c_str(), "system.posix_acl_default", acl.data(), acl.size(), 0) !=
      0)
    GTEST_SKIP() << "this file system knows no ACLs";
  Store store{root()};
  Store::StagedTree tree = store.stage_tree();
  const fs::path file = tree.fs_path() / "file";
  { const Fd fd = open_file(file, O_WRONLY | O_CREAT, 0644); }
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(status.st_mode & 0777U, 0644U & ~mask);
}

TEST_F(StoreTest, KnowsWhetherThereIsSomethingToSync) {
  Store store{root()};
  EXPECT_FALSE(store.needs_sync());
  store.put("new");
  EXPECT_TRUE(store.needs_sync());
  Store again{root()};
  again.put("new");
  EXPECT_FALSE(again.needs_sync());
}

TEST_F(StoreTest, MakesFoldersThatWereRemoved) {
  const Digest kept = Store{root()}.put("kept");
  fs::remove_all(root() / "trees");
  fs::remove_all(root() / "names");
  Store again{root()};
  EXPECT_EQ(again.read(kept), "kept");
  EXPECT_TRUE(fs::is_directory(root() / "trees"));
  EXPECT_TRUE(fs::is_directory(root() / "names"));
}

TEST_F(StoreTest, SweepsOnlyWhatDeadProcessesLeft) {
  Store live{root()};
  Store::Staged staged = live.stage();
  write_all(staged.fd(), as_bytes("going on"));
  const fs::path tmp = root() / "tmp";
  make_folders(tmp / "work-dead00000000" / "tree-1" / "fs");
  write_file(tmp / "work-dead00000000" / ".lock", "");
  make_folders(tmp / "work-killedatonce");
  make_folders(tmp / ("garbage-" + std::string(64, 'a')) / "fs");
  const std::size_t ours = 3;
  // What is not ours by its name, its lock, or at all.
  make_folders(tmp / "work-thesis");
  write_file(tmp / "work-thesis" / ".lock", "");
  make_folders(tmp / "work-mythesis2026" / "chapters");
  make_folders(tmp / "garbage-collection");
  write_file(tmp / "stray", "");
  write_file(root() / "chapter", "");
  fs::create_directory_symlink(root(), tmp / "work-linktofolder");
  const std::size_t all = list_folder(tmp).size();
  { const Store other{root()}; }
  EXPECT_EQ(list_folder(tmp).size(), all - ours);
  EXPECT_TRUE(fs::exists(tmp / "work-mythesis2026" / "chapters"));
  EXPECT_TRUE(fs::exists(root() / "chapter"));
  EXPECT_TRUE(fs::exists(staged.path()));
  staged.commit(Digest::of("going on"));
  EXPECT_EQ(live.read(Digest::of("going on")), "going on");
}

// NOLINTNEXTLINE(readability-function-size): gtest's macros nest
TEST_F(StoreTest, ManyWritersOfTheSameThings) {
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (unsigned round = 0; round < 4; ++round) {
          // A store each, as processes have, opened and swept at the same time.
          Store store{root()};
          const Image image = random_image(store, (i + round) % 4, 2);
          store.tag(Reference::parse("name:v" + std::to_string(round % 3)), image.digest());
          unpack_image(store, image, quiet_);
          if (round % 2 == 0) store.sync();
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  const Store store{root()};
  EXPECT_TRUE(verify(store).empty());
  EXPECT_TRUE(list_folder(root() / "tmp").empty());
  EXPECT_EQ(store.names().size(), 3U);
}

TEST_F(StoreTest, AfterAPowerCutRightDataIsKept) {
  Digest digest = Digest::of("");
  Image image = [&] {
    Store store{root()};
    digest = store.put("blob");
    Image made = random_image(store, 1, 2);
    unpack_image(store, made, quiet_);
    return made;
  }();
  reboot();
  const Store store{root()};
  EXPECT_TRUE(store.has(digest));
  EXPECT_EQ(store.image(image.digest()).layers.size(), 2U);
  for (const Layer& layer : image.layers) {
    EXPECT_TRUE(store.has(layer.blob.digest));
    EXPECT_EQ(store.find_tree(layer.diff_id), std::nullopt) << "trees are made anew";
    EXPECT_FALSE(fs::exists(root() / "trees" / layer.diff_id.hex()));
  }
  EXPECT_EQ(count_files(root() / "unsynced"), 0U);
  EXPECT_TRUE(verify(store).empty());
  { const Store again{root()}; }
  EXPECT_TRUE(list_folder(root() / "unsynced").empty());
}

TEST_F(StoreTest, AfterAPowerCutWrongDataIsDroppedAndCanBePutAgain) {
  std::optional<Image> image;
  {
    Store store{root()};
    store.put("blob");
    image = random_image(store, 1, 2);
    unpack_image(store, *image, quiet_);
  }
  const Layer& whole = image->layers[0];
  const Layer& spliced = image->layers[1];
  reboot();
  damage_file(blob(Digest::of("blob")), 1);
  damage_file(blob(whole.blob.digest), 100);
  damage_file(root() / "spliced" / spliced.blob.digest.hex(), 400);
  Store store{root()};
  EXPECT_EQ(code_of([&] { store.open(Digest::of("blob")); }), "absent");
  EXPECT_FALSE(fs::exists(blob(Digest::of("blob"))));
  EXPECT_FALSE(store.has(spliced.blob.digest));
  // Putting it again, without having looked.
  EXPECT_EQ(random_image(store, 1, 2).digest(), image->digest());
  EXPECT_EQ(unpack_image(store, *image, quiet_).size(), 2U);
  EXPECT_EQ(store.put("blob"), Digest::of("blob"));
  EXPECT_EQ(store.read(Digest::of("blob")), "blob");
  EXPECT_TRUE(verify(store).empty());
  store.sync();
  EXPECT_EQ(count_files(root() / "unsynced"), 0U);
}

TEST_F(StoreTest, ACommitReplacesWhatIsSuspect) {
  const Digest digest = Digest::of("content");
  {
    Store store{root()};
    store.put("content");
  }
  reboot();
  damage_file(blob(digest), 1);
  Store store{root()};
  Store::Staged staged = store.stage();
  write_all(staged.fd(), as_bytes("content"));
  staged.commit(digest);
  EXPECT_EQ(store.read(digest), "content");
}

TEST_F(StoreTest, SyncRemovesTheMarks) {
  Store store{root()};
  store.put("one");
  Store::StagedTree tree = store.stage_tree();
  tree.publish(Digest::of("tree"));
  EXPECT_EQ(count_files(root() / "unsynced"), 2U);
  store.sync();
  EXPECT_EQ(count_files(root() / "unsynced"), 0U);
  reboot();
  damage_file(blob(Digest::of("one")), 0);
  const Store after{root()};
  EXPECT_TRUE(after.has(Digest::of("one"))) << "synced: trusted without a look";
  EXPECT_TRUE(after.find_tree(Digest::of("tree")).has_value());
}

TEST_F(StoreTest, VerifyFindsEveryDamageAndRepairRemovesIt) {
  Store store{root()};
  const Image image = random_image(store, 3, 4);
  const Image other = random_image(store, 4, 2);
  store.tag(Reference::parse("image"), image.digest());
  store.tag(Reference::parse("other"), other.digest());
  const auto trees = unpack_image(store, image, quiet_);
  ASSERT_TRUE(verify(store).empty());

  std::ofstream{trees[0] / "opt" / "extra"} << "not in the layer";
  fs::permissions(trees[1] / "opt", fs::perms::owner_all);
  damage_file(blob(image.layers[2].blob.digest), 50);
  damage_file(root() / "spliced" / image.layers[3].blob.digest.hex(), 300);
  write_file(root() / "names" / "torn:latest", "sha2");
  write_file(root() / "names" / "gone:latest", Digest::of("gone").str() + "\n");
  write_file(root() / "blobs" / "stray", "");
  store.put_key(Digest::of("key"), "value");
  damage_file(root() / "keys" / Digest::of("key").hex(), 66);

  std::vector<std::string> found;
  for (const Store::Damage& damage : verify(store)) {
    EXPECT_FALSE(damage.why.empty());
    found.push_back(damage.what);
  }
  std::vector<std::string> wanted{"blob " + image.layers[2].blob.digest.str(),
                                  "layer " + image.layers[3].blob.digest.str(),
                                  "tree " + image.layers[0].diff_id.str(),
                                  "tree " + image.layers[1].diff_id.str(),
                                  "name image:latest",
                                  "name torn:latest",
                                  "name gone:latest",
                                  "key " + Digest::of("key").str(),
                                  "file blobs/stray"};
  std::sort(found.begin(), found.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(found, wanted);

  write_file(root() / "names" / "notes", "of somebody");
  write_file(root() / "blobs" / ".tmp-0123456789ab", "what a killed mlenv left");
  verify(store, true);
  EXPECT_EQ(verify(store).size(), 2U) << "what mlenv did not make is told, and stays";
  EXPECT_TRUE(fs::exists(root() / "blobs" / "stray"));
  EXPECT_TRUE(fs::exists(root() / "names" / "notes"));
  fs::remove(root() / "blobs" / "stray");
  fs::remove(root() / "names" / "notes");
  EXPECT_TRUE(verify(store).empty());
  EXPECT_EQ(store.find_image("other"), other.digest());
  EXPECT_EQ(store.find_image("image"), std::nullopt) << "its layers are gone";
  random_image(store, 3, 4);
  store.tag(Reference::parse("image"), image.digest());
  EXPECT_EQ(unpack_image(store, image, quiet_), trees);
  EXPECT_TRUE(verify(store).empty());
}

TEST_F(StoreTest, AFolderOfOtherThingsIsNoStore) {
  const fs::path other = root() / "other";
  make_folders(other / "tmp" / "thesis");
  write_file(other / "tmp" / "thesis" / "chapter", "1");
  EXPECT_EQ(code_of([&] { const Store store{other}; }), "not-a-store");
  EXPECT_EQ(list_folder(other), std::vector<fs::path>{other / "tmp"});
  EXPECT_TRUE(fs::exists(other / "tmp" / "thesis" / "chapter"));
  write_file(other / "version", "1\n");
  EXPECT_EQ(code_of([&] { const Store store{other}; }), "not-a-store");
}

TEST_F(StoreTest, AStoreOfAnEarlierMlenvGetsItsMark) {
  const fs::path old = root() / "old";
  const Digest kept = Store{old}.put("kept");
  const fs::path mark = old / "mlenv-store";
  ASSERT_TRUE(fs::remove(mark));
  fs::remove(old / "keys");  // empty, and taken away by somebody
  EXPECT_EQ(Store{old}.read(kept), "kept");
  EXPECT_TRUE(fs::exists(mark));
}

TEST_F(StoreTest, ALinkInTheStoreIsNotFollowed) {
  const fs::path store = root() / "linked";
  const fs::path thesis = root() / "thesis";
  { const Store made{store}; }
  make_folders(thesis / "work-0123456789ab");
  fs::remove(store / "tmp");
  fs::create_directory_symlink(thesis, store / "tmp");
  EXPECT_EQ(code_of([&] { const Store again{store}; }), "not-a-store");
  EXPECT_TRUE(fs::exists(thesis / "work-0123456789ab"));
}

TEST_F(StoreTest, NobodyElseMayWriteWhateverTheUmaskIs) {
  const mode_t before = ::umask(0);
  const fs::path path = root() / "open";
  {
    Store store{path};
    store.put("something");
    ASSERT_EQ(::chmod((path / "blobs").c_str(), 0777), 0);
    ASSERT_EQ(::chmod((path / "trees").c_str(), 0777), 0);
  }
  { const Store again{path}; }
  ::umask(before);
  struct stat status {};
  for (const auto& entry : fs::recursive_directory_iterator{path}) {
    ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0022U, 0U) << entry.path();
  }
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0755U);
  ASSERT_EQ(::stat((path / "trees").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

/// The child of the next test; ended by SIGKILL.
TEST_F(StoreTest, DISABLED_WritesUntilKilled) {
  const char* path = std::getenv("MLENV_TEST_STORE");  // NOLINT(concurrency-mt-unsafe)
  ASSERT_NE(path, nullptr);
  std::random_device seed;
  while (true) {
    Store store{path};
    const Image image = random_image(store, seed(), 3);
    store.tag(Reference::parse("image:v" + std::to_string(seed() % 4)), image.digest());
    store.put_key(image.digest(), "value");
    unpack_image(store, image, quiet_);
  }
}

TEST_F(StoreTest, ASigkillLeavesTheStoreWhole) {
  Command command{Purpose{"test"}};
  command.argv = {own_executable().string(), "--gtest_also_run_disabled_tests",
                  "--gtest_filter=StoreTest.DISABLED_WritesUntilKilled"};
  command.env = {{"MLENV_TEST_STORE=" + root().string()}};
  const Fd null = open_file("/dev/null", O_WRONLY);
  command.stdout_fd = null.get();
  for (int round = 0; round < 6; ++round) {
    {
      Child child{command};
      // However slow the machine: let it come as far as a name.
      for (int i = 0; i < 10'000 && list_folder(root() / "names").empty(); ++i) {
        ASSERT_EQ(child.wait(std::chrono::milliseconds{5}), std::nullopt);
      }
      ASSERT_EQ(child.wait(std::chrono::milliseconds{20 + round * 37}), std::nullopt);
      child.signal(SIGKILL);
      ASSERT_TRUE(child.wait(std::chrono::seconds{30}).has_value());
    }
    const Store store{root()};
    EXPECT_TRUE(list_folder(root() / "tmp").empty());
    for (const Store::Damage& damage : verify(store)) {
      ADD_FAILURE() << damage.what << ": " << damage.why;
    }
  }
  EXPECT_FALSE(Store{root()}.names().empty());
}

TEST_F(StoreTest, AFullDiskIsAnErrorAndPublishesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system needs root";
  bool mounted = false;
  // A mount namespace belongs to its thread and ends with it.
  std::thread{[&] {
    make_folders(root());
    mounted = ::unshare(CLONE_NEWNS | CLONE_FS) == 0 &&
              ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              ::mount("none", root().c_str(), "tmpfs", 0, "size=512k") == 0;
    if (!mounted) return;
    Store store{root()};
    const Digest kept = store.put("kept");
    const std::string large(1 << 20, 'x');
    EXPECT_EQ(code_of([&] { store.put(large); }), "no-space");
    EXPECT_EQ(code_of([&] {
                store.put_spliced(Digest::of(large), large.size(),
                                  {large, {{std::nullopt, 0, large.size()}}});
              }),
              "no-space");
    EXPECT_EQ(code_of([&] { store.put_key(kept, large); }), "no-space");
    EXPECT_FALSE(store.has(Digest::of(large)));
    EXPECT_EQ(store.find_key(kept), std::nullopt);
    EXPECT_EQ(store.read(kept), "kept");
    EXPECT_NO_THROW(store.put(std::string(300'000, 'y'))) << "nothing half written stays";
    EXPECT_TRUE(verify(store).empty());
  }}.join();
  if (!mounted) GTEST_SKIP() << "this container does not let us mount";
}

}  // namespace
}  // namespace mlenv
