#include "images/inspect/layer_facts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "images/inspect/inspect.hpp"
#include "images/unpack.hpp"
#include "tests/support/corpus.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

std::string sample_library() {
  return read_file(source_folder() / "tests/fuzz/corpus/elf/good-top.so");
}

void put_number(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(&bytes.at(at), &value, sizeof value);
}
std::uint64_t number_at(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, &bytes.at(at), sizeof value);
  return value;
}

/// The same library with its names moved to the middle of a large file, where nobody looks at once.
std::string library_with_far_names() {
  constexpr std::size_t kMiddle = std::size_t{28} << 20U;
  constexpr std::size_t kSize = std::size_t{48} << 20U;
  constexpr std::size_t kSegments = 64;  // where their table is
  constexpr std::size_t kSegment = 56;
  constexpr std::uint64_t kStringTable = 5;
  std::string bytes = sample_library();
  put_number(bytes, kSegments + 32, kSize);  // the first segment's size in the file
  const std::size_t dynamic = number_at(bytes, kSegments + 2 * kSegment + 8);
  for (std::size_t at = dynamic; number_at(bytes, at) != 0; at += 16) {
    if (number_at(bytes, at) != kStringTable) continue;
    const std::string names = bytes.substr(number_at(bytes, at + 8), 76);
    put_number(bytes, at + 8, kMiddle);
    bytes.resize(kMiddle);
    bytes += names;
    bytes.resize(kSize);
    return bytes;
  }
  return {};
}

class LayerFactsTest : public testing::Test {
 protected:
  LayerFacts streamed(const std::vector<TestEntry>& entries) {
    layer_ = put_layer(store_, test_tar(entries), "test");
    return read_layer_facts(store_, layer_.value(), quiet_);
  }
  LayerFacts from_tree() {
    unpack_layer(store_, layer_.value(), quiet_);
    return read_layer_facts(store_, layer_.value(), quiet_);
  }

  TemporaryFolder folder_{temporary_root(), "mlenv-test-"};
  Store store_{folder_.path() / "store"};
  QuietProgress quiet_;
  std::optional<Layer> layer_;
};

TEST_F(LayerFactsTest, AreTheSameFromBlobAndTree) {
  const LayerFacts facts = streamed({
      test_folder("lib"),
      test_file("lib/z.so", sample_library()),
      test_hardlink("lib/a.so", "lib/z.so"),
      test_hardlink("lib/b.so", "lib/a.so"),
      test_symlink("lib/link.so", "z.so"),
      test_file("lib/replaced.so", sample_library()),
      test_file("lib/replaced.so", "no library any more"),
      test_file("lib/library.py", sample_library()),
      test_file("lib/.wh.gone", ""),
      test_folder("etc"),
      test_file("etc/passwd", "root:x:0:0::/root:/bin/sh\n"),
      test_folder("opaque"),
      test_file("opaque/.wh..wh..opq", ""),
  });
  ASSERT_EQ(facts.elves.size(), 1);
  EXPECT_EQ(facts.elves[0].path, "lib/a.so");
  EXPECT_EQ(facts.elves[0].elf.soname, "libtop.so.2");
  const auto same = [](const LayerEntry& entry) { return entry.kind == "same"; };
  EXPECT_EQ(std::count_if(facts.entries.begin(), facts.entries.end(), same), 2);
  ASSERT_EQ(facts.texts.size(), 1);
  EXPECT_EQ(facts.texts[0].text, "root:x:0:0::/root:/bin/sh\n");
  EXPECT_EQ(from_tree(), facts);
}

TEST_F(LayerFactsTest, TablesInTheMiddleAreReadInASecondPass) {
  const std::string bytes = library_with_far_names();
  ASSERT_FALSE(bytes.empty());
  const LayerFacts facts = streamed({test_file("far.so", bytes)});
  ASSERT_EQ(facts.elves.size(), 1);
  EXPECT_EQ(facts.elves[0].elf.needed, std::vector<std::string>{"libdep.so.1"});
  EXPECT_EQ(facts.elves[0].elf.soname, "libtop.so.2");
  EXPECT_EQ(from_tree(), facts);
}

TEST_F(LayerFactsTest, OfAnImageAreRemembered) {
  const Image image = random_image(store_, 7, 4);
  const ImageFacts facts = image_facts(store_, image, quiet_);
  EXPECT_EQ(facts.digest, image.digest().str());
  EXPECT_EQ(facts.kind, "image");
  EXPECT_GT(*facts.unpacked_bytes, 0);
  EXPECT_GT(*facts.packed_bytes, 0);
  // Without its layers it is known all the same.
  fs::remove_all(folder_.path() / "store/blobs");
  fs::remove_all(folder_.path() / "store/spliced");
  EXPECT_EQ(image_facts(store_, image, quiet_), facts);
}

TEST_F(LayerFactsTest, WhatIsUnpackedNeedsNoRoom) {
  const Image image = random_image(store_, 7, 4);
  const std::uint64_t all = *image_facts(store_, image, quiet_).unpacked_bytes;
  EXPECT_EQ(bytes_to_unpack(store_, image, quiet_), all);
  unpack_layer(store_, image.layers.back(), quiet_);
  std::uint64_t top = 0;
  for (const LayerEntry& entry : layer_facts(store_, image.layers.back(), quiet_).entries) {
    if (entry.kind == "file") top += entry.bytes;
  }
  EXPECT_GT(top, 0);
  EXPECT_EQ(bytes_to_unpack(store_, image, quiet_), all - top);
  unpack_image(store_, image, quiet_);
  EXPECT_EQ(bytes_to_unpack(store_, image, quiet_), 0);
}

}  // namespace
}  // namespace mlenv
