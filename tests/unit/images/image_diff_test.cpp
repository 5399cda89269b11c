#include "images/image_diff.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "images/image_files.hpp"
#include "images/unpack.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

using Where = LayerPresence::Where;
using ImageFiles = std::map<std::string, std::string>;

Layer layer_of_tar(const std::string& blob, const std::string& tar, std::uint64_t size = 10) {
  return {{std::string(kLayerGzipType), Digest::of(blob), size}, Digest::of(tar), 0, tar};
}

TEST(ImageDiff, AnImageIsItself) {
  const Image image = compose_image({}, {layer_of_tar("a", "a")}, 0);
  const ImageDiff diff = diff_images(image, image);
  EXPECT_TRUE(diff.values.empty());
  EXPECT_TRUE(diff.same_files);
  EXPECT_EQ(diff.fetch_layers, 0U);
}

TEST(ImageDiff, TellsTheLayersOfEachAndWhatToFetch) {
  const Image from = compose_image(
      {}, {layer_of_tar("a", "a"), layer_of_tar("b", "b"), layer_of_tar("c", "c")}, 0);
  const Image to = compose_image(
      {}, {layer_of_tar("a", "a"), layer_of_tar("c again", "c", 30), layer_of_tar("d", "d", 4)}, 0);
  const ImageDiff diff = diff_images(from, to);
  ASSERT_EQ(diff.layers.size(), 4U);
  EXPECT_EQ(diff.layers[0].where, Where::from_only);
  EXPECT_EQ(diff.layers[0].layer.title, "b");
  EXPECT_EQ(diff.layers[1].where, Where::both);
  EXPECT_EQ(diff.layers[2].where, Where::both_packed_differently);
  EXPECT_EQ(diff.layers[3].where, Where::to_only);
  EXPECT_FALSE(diff.same_files);
  EXPECT_EQ(diff.fetch_layers, 2U);
  EXPECT_EQ(diff.fetch_bytes, 34U);
}

TEST(ImageDiff, TellsTheValuesOfConfigs) {
  ImageConfig config;
  config.env = {"PATH=/bin", "A=1"};
  config.command = {"python", "a b.py"};
  config.workdir = "/old";
  config.labels = {{"x", "1"}};
  const Image from = compose_image(config, {}, 0);
  config.env = {"A=2", "PATH=/bin"};
  config.command = {};
  config.workdir = "/new";
  config.labels = {{"y", "1"}};
  config.user = "app";
  const Image to = compose_image(config, {}, 60);
  const ValueChanges expected = {{"created", "1970-01-01T00:00:00Z", "1970-01-01T00:01:00Z"},
                                 {"command", "\"python\" \"a b.py\"", std::nullopt},
                                 {"user", std::nullopt, "app"},
                                 {"workdir", "/old", "/new"},
                                 {"env A", "1", "2"},
                                 {"label x", "1", std::nullopt},
                                 {"label y", std::nullopt, "1"}};
  EXPECT_EQ(diff_images(from, to).values, expected);
  EXPECT_TRUE(diff_images(from, to).same_files);
}

TEST(ImageDiff, OtherImagesAlwaysDifferInSomething) {
  const Image image = compose_image({}, {layer_of_tar("a", "a")}, 0);
  std::string spaced = image.manifest;
  spaced.insert(1, " ");
  const ImageDiff diff = diff_images(image, parse_image(spaced, image.config));
  ASSERT_EQ(diff.values.size(), 1U);
  EXPECT_EQ(diff.values[0].name, "manifest");
}

class ImageFilesTest : public testing::Test {
 protected:
  ImageFiles files(const std::vector<std::vector<TestEntry>>& layers, bool unpacked,
                   std::uint64_t most_bytes = kMostImageFiles) {
    std::vector<Layer> list;
    for (const auto& entries : layers) list.push_back(put_layer(store_, test_tar(entries), "l"));
    const Image image = compose_image({}, list, 0);
    if (unpacked) unpack_image(store_, image, quiet_);
    const Wanted wanted = [](std::string_view path) {
      return path.ends_with("META")   ? Want::content
             : path.ends_with("NAME") ? Want::name
                                      : Want::nothing;
    };
    return image_files(store_, image, wanted, quiet_, most_bytes);
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  QuietProgress quiet_;
};

TEST_F(ImageFilesTest, SeesWhatAContainerSees) {
  const std::vector<std::vector<TestEntry>> layers = {
      {test_folder("a"), test_file("a/META", "old"), test_folder("b"), test_file("b/META", "b"),
       test_folder("c"), test_file("c/META", "c"), test_folder("d"), test_file("d/META", "d"),
       test_folder("e"), test_file("e/META", "e"), test_folder("f"), test_file("f/META", "f")},
      {test_folder("a"), test_file("a/META", "new"), test_file(".wh.b", ""), test_folder("c"),
       test_file("c/.wh.META", ""), test_folder("d"), test_file("d/.wh..wh..opq", ""),
       test_file("d/other", ""), test_symlink("e", "a"), test_folder("g"),
       test_file("g/plain", "g"), test_hardlink("g/META", "g/plain")}};
  const ImageFiles expected = {{"a/META", "new"}, {"f/META", "f"}, {"g/META", "g"}};
  EXPECT_EQ(files(layers, false), expected);
}

TEST_F(ImageFilesTest, ReadsUnpackedLayersToo) {
  const std::vector<std::vector<TestEntry>> layers = {
      {test_folder("a"), test_file("a/META", "old"), test_folder("b"), test_file("b/META", "b"),
       test_folder("d"), test_file("d/META", "d"), test_folder("e"), test_file("e/META", "e")},
      {test_folder("a"), test_file("a/META", "new"), test_file(".wh.b", ""), test_folder("d"),
       test_file("d/.wh..wh..opq", ""), test_file("d/other", ""), test_symlink("e", "a")}};
  const ImageFiles packed = files(layers, false);
  EXPECT_EQ(packed, (ImageFiles{{"a/META", "new"}}));
  EXPECT_EQ(files(layers, true), packed);
}

TEST_F(ImageFilesTest, FollowsHardLinks) {
  const std::vector<std::vector<TestEntry>> layers = {
      {test_file("plain", "first"), test_file("a", "of a"), test_hardlink("b", "a"),
       test_hardlink("META", "b"), test_hardlink("x/META", "META"),
       test_hardlink("y/META", "plain"), test_file("z/META", "no link"),
       test_hardlink("z/META", "a")},
      {test_hardlink("y/META", "y/META")}};
  EXPECT_EQ(
      files({layers[0]}, false),
      (ImageFiles{{"META", "of a"}, {"x/META", "of a"}, {"y/META", "first"}, {"z/META", "of a"}}));
  EXPECT_EQ(files({layers[0]}, true), files({layers[0]}, false));
  // Nothing to follow: as an empty file.
  EXPECT_EQ(files(layers, false)["y/META"], "");
  EXPECT_EQ(files({{test_hardlink("a", "b"), test_hardlink("b", "a"), test_hardlink("META", "a")}},
                  false),
            (ImageFiles{{"META", ""}}));
}

TEST_F(ImageFilesTest, KeepsNamesWhereNamesAreWanted) {
  const std::vector<std::vector<TestEntry>> layers = {
      {test_file("NAME", std::string(std::size_t{70} << 20U, ' ')), test_file("a/NAME", "x")}};
  EXPECT_EQ(files(layers, false), (ImageFiles{{"NAME", ""}, {"a/NAME", ""}}));
  EXPECT_EQ(files(layers, true), (ImageFiles{{"NAME", ""}, {"a/NAME", ""}}));
}

TEST_F(ImageFilesTest, MemoryIsBounded) {
  const auto code_of = [&](const std::vector<std::vector<TestEntry>>& layers, bool unpacked) {
    try {
      (void)files(layers, unpacked, 10'000);
      return std::string("none");
    } catch (const Error& error) {
      return std::string(error.code());
    }
  };
  std::vector<TestEntry> names;
  for (int i = 0; i < 200; ++i) names.push_back(test_file("file-" + std::to_string(i), ""));
  const std::string half(6000, 'x');
  for (const bool unpacked : {false, true}) {
    EXPECT_EQ(code_of({{test_file("a/META", half)}}, unpacked), "none");
    EXPECT_EQ(code_of({{test_file("a/META", half), test_file("b/META", half)}}, unpacked),
              "too-large");
    EXPECT_EQ(code_of({{test_file("a/META", half)}, {test_file("b/META", half)}}, unpacked),
              "too-large");
    EXPECT_EQ(code_of({names}, unpacked), "too-large");
  }
}

}  // namespace
}  // namespace mlenv
