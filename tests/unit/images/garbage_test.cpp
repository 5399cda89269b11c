#include "images/garbage.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <memory>
#include <set>
#include <thread>

#include "base/digest_scan.hpp"
#include "base/progress.hpp"
#include "images/store.hpp"
#include "images/unpack.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

using std::chrono::hours;

constexpr hours kDay{24};

void set_used(const fs::path& path, std::chrono::seconds ago) {
  const auto when = std::chrono::system_clock::now() - ago;
  const timespec time{std::chrono::system_clock::to_time_t(when), 0};
  const std::array<timespec, 2> times{time, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0) << path;
}

std::chrono::seconds since_use(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return std::chrono::seconds{std::time(nullptr) - status.st_mtime};
}

std::set<std::string> folder_names(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::path& path : list_folder(folder)) names.insert(path.filename().string());
  return names;
}

class GarbageTest : public testing::Test {
 protected:
  fs::path root() const { return folder_.path() / "store"; }
  /// All that lies there was used so long ago.
  void age(std::chrono::seconds ago) const {
    for (const char* name : {"blobs", "spliced", "trees", "keys"}) {
      for (const fs::path& path : list_folder(root() / name)) set_used(path, ago);
    }
  }
  /// By a process that ends with it.
  Image made(unsigned seed, const std::string& name = {}, bool unpacked = false) {
    Store store{root()};
    Image image = random_image(store, seed, 2);
    if (!name.empty()) store.tag(Reference::parse(name), image.digest());
    if (unpacked) (void)unpack_image(store, image, quiet_);
    return image;
  }
  Garbage collect(const GarbageSettings& settings = {}) const {
    return Store{root()}.collect_garbage(settings);
  }
  bool is_whole(const Image& image) const {
    const Store store{root()};
    return store.has(image.digest()) && store.image(image.digest()).digest() == image.digest() &&
           std::all_of(image.layers.begin(), image.layers.end(),
                       [&](const Layer& layer) { return store.has(layer.blob.digest); });
  }
  /// Nothing of it is there.
  bool is_gone(const Image& image) const {
    const Store store{root()};
    return !store.has(image.digest()) && !store.has(Digest::of(image.config)) &&
           std::none_of(image.layers.begin(), image.layers.end(), [&](const Layer& layer) {
             return store.has(layer.blob.digest) || store.find_tree(layer.diff_id);
           });
  }
  void expect_sound() const {
    EXPECT_TRUE(Store{root()}.verify(false, [](std::string_view) {}).empty());
    EXPECT_TRUE(list_folder(root() / "tmp").empty());
  }

  TemporaryFolder folder_{temporary_root()};
  QuietProgress quiet_;
};

TEST(DigestsIn, FindsThoseOfExactlySoManyDigits) {
  const std::string one = Digest::of("one").hex();
  const std::string two = Digest::of("two").hex();
  EXPECT_TRUE(digests_in("").empty());
  EXPECT_TRUE(digests_in(one.substr(1)).empty());
  EXPECT_TRUE(digests_in(one + "0").empty());
  EXPECT_TRUE(digests_in(one + two).empty());
  EXPECT_EQ(digests_in("x " + one + "\nsha256:" + two),
            (std::vector{Digest::from_hex(one), Digest::from_hex(two)}));
}

TEST_F(GarbageTest, TakesAwayWhatNoNameLeadsTo) {
  const Image named = made(1, "named", true);
  const Image unnamed = made(2, "", true);
  Garbage found = collect({.only_look = true});
  EXPECT_TRUE(is_whole(unnamed));
  EXPECT_EQ(found.images.count, 1U);
  EXPECT_GT(found.blobs.bytes, 0U);
  EXPECT_EQ(found.trees.count, 2U);

  std::uint64_t freed = 0;
  const Garbage taken = collect({.freed = [&](std::uint64_t bytes) { freed += bytes; }});
  EXPECT_TRUE(is_whole(named));
  EXPECT_EQ(folder_names(root() / "trees").size(), 2U);
  EXPECT_TRUE(is_gone(unnamed));
  EXPECT_EQ(taken.bytes(), found.bytes());
  EXPECT_EQ(freed, taken.bytes());
  EXPECT_EQ(taken.spared.count, 0U);
  EXPECT_EQ(collect().bytes(), 0U);
  expect_sound();
}

TEST_F(GarbageTest, WhatSharesAWheelKeepsIt) {
  // Layers of both are slices of one wheel each; the same seed gives the same ones.
  const Image one = made(1, "one");
  Store{root()}.tag(Reference::parse("other"), one.digest());
  EXPECT_TRUE(Store{root()}.untag(Reference::parse("one")));
  EXPECT_EQ(collect().bytes(), 0U);
  EXPECT_TRUE(Store{root()}.untag(Reference::parse("other")));
  EXPECT_GT(collect().bytes(), 0U);
  EXPECT_TRUE(folder_names(root() / "blobs").empty());
  EXPECT_TRUE(folder_names(root() / "spliced").empty());
}

TEST_F(GarbageTest, WhatNamesMeantBeforeStaysForRollback) {
  const Image before = made(1, "name");
  const Image now = made(2, "name");
  const Garbage kept = collect();
  EXPECT_TRUE(is_whole(before));
  EXPECT_GT(kept.for_history.bytes, 0U);
  EXPECT_EQ(kept.for_runs.bytes, 0U);
  EXPECT_GT(collect({.forget_history = true}).bytes(), 0U);
  EXPECT_TRUE(is_gone(before));
  EXPECT_TRUE(is_whole(now));
  EXPECT_FALSE(Store{root()}.history(Reference::parse("name")).back().whole);
  expect_sound();
}

TEST_F(GarbageTest, WhatOthersNeedStays) {
  const Image image = made(1);
  const Digest code = Store{root()}.put("code of a run");
  const Garbage kept = collect({.needed = [&] {
    return std::vector{image.digest(), code, Digest::of("nothing")};
  }});
  EXPECT_TRUE(is_whole(image));
  EXPECT_TRUE(Store{root()}.has(code));
  EXPECT_GT(kept.for_runs.bytes, 0U);
  (void)collect({.needed = [&] { return std::vector{code}; }});
  EXPECT_TRUE(is_gone(image));
  EXPECT_TRUE(Store{root()}.has(code));
}

TEST_F(GarbageTest, WhatALivingProcessFoundOrMadeStays) {
  const Image old = made(1);
  age(3 * kDay);
  Store living{root()};
  const Image image = random_image(living, 2, 2);
  // It looks at one layer of the old image.
  EXPECT_TRUE(living.has(old.layers[0].blob.digest));
  const Garbage held = collect();
  EXPECT_TRUE(is_whole(image));
  EXPECT_TRUE(Store{root()}.has(old.layers[0].blob.digest));
  EXPECT_FALSE(Store{root()}.has(old.digest()));
  EXPECT_TRUE(held.held_since);
  EXPECT_GT(held.spared.bytes, 0U);
}

TEST_F(GarbageTest, APastProcessHoldsNothing) {
  const Image image = made(1);
  EXPECT_FALSE(collect().held_since);
  EXPECT_TRUE(is_gone(image));
}

TEST_F(GarbageTest, AProcessThatSaysWhatItNeedsHoldsNothingElse) {
  Store living{root()};
  const Image needed = random_image(living, 1, 2);
  const Image other = random_image(living, 2, 2);
  const Digest found = living.put("found again");
  living.need_only({needed.digest()});
  EXPECT_FALSE(collect().held_since);
  EXPECT_TRUE(is_whole(needed));
  EXPECT_TRUE(is_gone(other));
  EXPECT_FALSE(living.has(found));
  // Once it finds something, what it found counts again.
  EXPECT_EQ(living.put("found again"), found);
  EXPECT_TRUE(collect().held_since);
  EXPECT_TRUE(living.has(found));
}

TEST_F(GarbageTest, WhatOthersNeedIsAskedOnceItIsKnownWhoLives) {
  auto living = std::make_unique<Store>(root());
  const Image image = random_image(*living, 1, 2);
  // It ends in the middle of it, and leaves a record.
  (void)collect({.needed = [&] {
    living.reset();
    return std::vector{image.digest()};
  }});
  EXPECT_TRUE(is_whole(image));
}

TEST_F(GarbageTest, WhatAProcessNeedsCanBeSaidBeforeItUsesAnything) {
  const Image image = made(1);
  const Image other = made(2);
  const Store living{root()};
  living.need_only({image.digest()});
  EXPECT_FALSE(collect().held_since);
  EXPECT_TRUE(is_whole(image));
  EXPECT_TRUE(is_gone(other));
}

TEST_F(GarbageTest, AClockThatWasPutBackTellsNothing) {
  Store living{root()};
  const Image image = random_image(living, 1, 2);
  age(3 * kDay);
  for (const fs::path& work : list_folder(root() / "tmp")) set_used(work / ".lock", -2 * kDay);
  EXPECT_EQ(collect().held_since, std::chrono::system_clock::from_time_t(0));
  EXPECT_TRUE(is_whole(image));
}

TEST_F(GarbageTest, ManifestsMayBeginWithBlanks) {
  Image image = made(1);
  {
    Store store{root()};
    image.manifest = " \n" + image.manifest;
    store.put_image(image);
    store.tag(Reference::parse("name"), image.digest());
  }
  EXPECT_EQ(collect().images.count, 1U) << "the one without blanks";
  EXPECT_TRUE(is_whole(image));
}

TEST_F(GarbageTest, WhatCannotBeTakenAwayIsTold) {
  const Image image = made(1, "", true);
  // Not even root renames what is mounted; the rest goes.
  const fs::path tree = root() / "trees" / image.layers[0].diff_id.hex();
  if (::geteuid() != 0 || ::mount(tree.c_str(), tree.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "nothing can be mounted here";
  }
  const Garbage taken = collect();
  ::umount2(tree.c_str(), MNT_DETACH);
  EXPECT_EQ(taken.stuck.count, 1U);
  EXPECT_NE(taken.stuck_because, "");
  EXPECT_EQ(taken.trees.count, 1U);
  EXPECT_TRUE(fs::exists(tree));
  EXPECT_EQ(collect().stuck.count, 0U);
  EXPECT_TRUE(is_gone(image));
}

TEST_F(GarbageTest, LookingIsUse) {
  const Image image = made(1, "", true);
  const Digest key = Digest::of("key");
  Store{root()}.put_key(key, "value");
  age(3 * kDay);
  const Layer& layer = image.layers[0];
  const fs::path tree = root() / "trees" / layer.diff_id.hex();
  const fs::path content = tree / "fs";
  const auto content_before = since_use(content);
  {
    const Store store{root()};
    EXPECT_GT(since_use(root() / "blobs" / image.digest().hex()), kDay);
    (void)store.image(image.digest());
    EXPECT_TRUE(store.find_tree(layer.diff_id));
    EXPECT_TRUE(store.find_key(key));
  }
  EXPECT_LT(since_use(root() / "blobs" / image.digest().hex()), kDay);
  EXPECT_LT(since_use(tree), kDay);
  EXPECT_LT(since_use(root() / "keys" / key.hex()), kDay);
  EXPECT_GE(since_use(content), content_before) << "a layer's own times are not touched";
}

TEST_F(GarbageTest, VerifyIsNoUse) {
  const Image image = made(1, "name", true);
  age(3 * kDay);
  expect_sound();
  for (const char* name : {"blobs", "spliced", "trees"}) {
    for (const fs::path& path : list_folder(root() / name)) EXPECT_GT(since_use(path), kDay);
  }
  EXPECT_TRUE(is_whole(image));
}

TEST_F(GarbageTest, WhatWasUsedLatelyStaysWithAllThatItNeeds) {
  const Image image = made(1);
  const Image old = made(2);
  age(3 * kDay);
  // Its manifest alone.
  set_used(root() / "blobs" / image.digest().hex(), hours{1});
  // Uses are known to the hour.
  EXPECT_EQ(collect({.unused_for = std::chrono::minutes{30}, .only_look = true}).images.count, 1U);
  const Garbage taken = collect({.unused_for = 2 * kDay});
  EXPECT_TRUE(is_whole(image));
  EXPECT_TRUE(is_gone(old));
  EXPECT_GT(taken.spared.bytes, 0U);
  (void)collect({.unused_for = hours{0}});
  EXPECT_TRUE(is_gone(image));
}

TEST_F(GarbageTest, NoMoreGoesThanItTakes) {
  const Image oldest = made(1, "", true);
  EXPECT_EQ(collect({.keep = std::uint64_t{1} << 40U}).bytes(), 0U);
  EXPECT_TRUE(is_whole(oldest));
  age(3 * kDay);  // that look was a use
  const Image newer = made(2, "", true);
  const Image named = made(3, "named");
  const Garbage all = collect({.only_look = true});

  std::uint64_t total = 0;
  std::set<ino_t> seen;
  for (const char* name : {"blobs", "spliced", "trees"}) {
    for (const auto& entry : fs::recursive_directory_iterator{root() / name}) {
      struct stat status {};
      ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
      if (!seen.insert(status.st_ino).second) continue;
      total += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
  }
  // One byte less than there is: something goes, and it is of the oldest.
  const Garbage little = collect({.keep = total - 1});
  EXPECT_GT(little.bytes(), 0U);
  EXPECT_LT(little.bytes(), all.bytes());
  EXPECT_FALSE(Store{root()}.has(oldest.digest())) << "what needs others goes before them";
  EXPECT_TRUE(is_whole(newer));
  EXPECT_TRUE(is_whole(named));
  (void)collect({.keep = 0});
  EXPECT_TRUE(is_gone(newer));
  EXPECT_TRUE(is_whole(named));
  expect_sound();
}

TEST_F(GarbageTest, KeysGoWithWhatTheyLeadTo) {
  const Image named = made(1, "named");
  const Image unnamed = made(2);
  const Digest here = Digest::of("here");
  const Digest gone = Digest::of("gone");
  const Digest fact = Digest::of("fact");
  const Digest forgotten = Digest::of("forgotten");
  {
    Store store{root()};
    store.put_key(here, R"({"layer":")" + named.layers[0].blob.digest.str() + "\"}");
    store.put_key(gone, R"({"layer":")" + unnamed.layers[0].blob.digest.str() + "\"}");
    store.put_key(fact, "no digest");
    store.put_key(forgotten, "no digest");
  }
  set_used(root() / "keys" / forgotten.hex(), 31 * kDay);
  EXPECT_EQ(collect().keys.count, 2U);
  const Store store{root()};
  EXPECT_TRUE(store.find_key(here));
  EXPECT_TRUE(store.find_key(fact));
  EXPECT_FALSE(store.find_key(gone));
  EXPECT_FALSE(store.find_key(forgotten));
}

TEST_F(GarbageTest, AnIndexHoldsItsImages) {
  const Image image = made(1);
  {
    Store store{root()};
    const std::string text = fmt::format(
        R"({{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)"
        R"({{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{}","size":{},)"
        R"("platform":{{"os":"linux","architecture":"amd64"}}}}]}})",
        image.digest().str(), image.manifest.size());
    const ImageIndex index = parse_index(text);
    store.put_index(index);
    store.tag(Reference::parse("both"), index.digest());
  }
  EXPECT_EQ(collect().bytes(), 0U);
  EXPECT_TRUE(is_whole(image));
  EXPECT_TRUE(Store{root()}.untag(Reference::parse("both")));
  EXPECT_EQ(collect().images.count, 2U);
  EXPECT_TRUE(is_gone(image));
}

/// What begins meanwhile waits, what lives is heeded: nobody loses what it has found.
TEST_F(GarbageTest, OthersMayWorkMeanwhile) {
  constexpr int kRounds = 40;
  (void)made(9, "named");
  std::atomic<int> working = 2;
  std::atomic<int> lost = 0;
  const auto work = [&](unsigned seed) {
    for (int round = 0; round < kRounds; ++round) {
      Store store{root()};
      const Image image = random_image(store, seed, 2);
      const bool whole = store.has(image.digest()) &&
                         std::all_of(image.layers.begin(), image.layers.end(),
                                     [&](const Layer& one) { return store.has(one.blob.digest); });
      if (!whole) ++lost;
    }
    --working;
  };
  std::thread one{work, 1};
  std::thread other{work, 1};
  int collections = 0;
  for (; working > 0; ++collections) (void)collect();
  one.join();
  other.join();
  EXPECT_EQ(lost, 0);
  EXPECT_GT(collections, 1);
  (void)collect();
  EXPECT_EQ(folder_names(root() / "names").size(), 1U);
  EXPECT_TRUE(is_whole(made(9)));
  expect_sound();
}

}  // namespace
}  // namespace mlenv
