#include "images/archive_input.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

class ArchiveInputTest : public testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void write(const Image& image, const std::string& format, const std::string& file,
             const std::string& name) {
    write_output(store_, image, Reference::parse(name), Output::parse(format + path(file).string()),
                 quiet_);
  }
  Image fetch(const std::string& text, const std::optional<Digest>& manifest = {}) {
    Store fresh{folder_.path() / "fresh"};
    Image image =
        fetch_image(fresh, ArchivedImage::parse(text).value(), "linux/amd64", manifest, quiet_);
    EXPECT_TRUE(fresh.verify(false, [](std::string_view) {}).empty());
    for (const Layer& layer : image.layers) EXPECT_TRUE(fresh.has(layer.blob.digest));
    return image;
  }
  std::string code_of(const std::string& text) {
    try {
      fetch(text);
    } catch (const Error& error) {
      message_ = error.what();
      return error.code();
    }
    return "fetched";
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  Image image_{random_image(store_, 5, 3)};
  std::string message_;
  QuietProgress quiet_;
};

TEST(ArchivedImage, TextsNameFormatPathAndTag) {
  const auto image = ArchivedImage::parse("oci:../a:v1");
  ASSERT_TRUE(image);
  EXPECT_EQ(image->format, Output::Format::oci);
  EXPECT_EQ(image->path, "../a");
  EXPECT_EQ(image->tag, "v1");
  EXPECT_EQ(image->str(), "oci:../a:v1");
  EXPECT_EQ(ArchivedImage::parse("docker-archive:x.tar")->tag, "");
  EXPECT_FALSE(ArchivedImage::parse("registry.example/a:1"));
}

TEST_F(ArchiveInputTest, WhatIsWrittenIsRead) {
  write(image_, "oci:", "layout", "train:v1");
  write(image_, "oci-archive:", "layout.tar", "train:v1");
  write(image_, "docker-archive:", "docker.tar", "train:v1");
  EXPECT_EQ(fetch("oci:" + path("layout").string()).digest(), image_.digest());
  EXPECT_EQ(fetch("oci:" + path("layout").string() + ":v1").digest(), image_.digest());
  EXPECT_EQ(fetch("oci-archive:" + path("layout.tar").string()).digest(), image_.digest());
  const Image docker = fetch("docker-archive:" + path("docker.tar").string() + ":train:v1");
  EXPECT_EQ(docker.config, image_.config);
  ASSERT_EQ(docker.layers.size(), image_.layers.size());
  for (std::size_t i = 0; i < docker.layers.size(); ++i) {
    EXPECT_EQ(docker.layers[i].blob, image_.layers[i].blob);
  }
}

TEST_F(ArchiveInputTest, OneOfSeveralImagesIsNamed) {
  const Image other = random_image(store_, 6, 2);
  write(image_, "oci:", "layout", "train:v1");
  write(other, "oci:", "layout", "train:v2");
  const std::string layout = "oci:" + path("layout").string();
  EXPECT_EQ(fetch(layout + ":v2").digest(), other.digest());
  EXPECT_EQ(fetch(layout + ":train:v1").digest(), image_.digest());
  EXPECT_EQ(code_of(layout), "ambiguous");
  EXPECT_EQ(code_of(layout + ":v3"), "not-found");
  EXPECT_NE(message_.find("`v1`, `v2`"), std::string::npos) << message_;
  // A digest that is there goes before the tag.
  EXPECT_EQ(fetch(layout + ":v2", image_.digest()).digest(), image_.digest());
}

TEST_F(ArchiveInputTest, AnIndexIsResolvedForThePlatform) {
  write(image_, "oci:", "layout", "train:v1");
  const fs::path index = path("layout") / "index.json";
  json outer = json::parse(read_file(index));
  const auto entry = [&](const std::string& architecture) {
    json one = outer["manifests"][0];
    one.erase("annotations");
    one["platform"] = {{"os", "linux"}, {"architecture", architecture}};
    if (architecture != "amd64") one["digest"] = Digest::of(architecture).str();
    return one;
  };
  const std::string inner =
      json{{"schemaVersion", 2}, {"manifests", {entry("arm64"), entry("amd64")}}}.dump();
  write_file(path("layout") / "blobs/sha256" / Digest::of(inner).hex(), inner);
  outer["manifests"][0]["digest"] = Digest::of(inner).str();
  outer["manifests"][0]["size"] = inner.size();
  outer["manifests"][0].erase("platform");
  write_file(index, outer.dump());
  EXPECT_EQ(fetch("oci:" + path("layout").string() + ":v1").digest(), image_.digest());
}

TEST_F(ArchiveInputTest, OtherThingsAreRefused) {
  EXPECT_EQ(code_of("oci:" + path("nowhere").string()), "absent");
  fs::create_directory(path("empty"));
  EXPECT_EQ(code_of("oci:" + path("empty").string()), "bad-image");
  EXPECT_EQ(code_of("oci-archive:" + path("empty").string()), "bad-image");
  write_file(path("packed.tar"), test_gzip("tar"));
  EXPECT_EQ(code_of("docker-archive:" + path("packed.tar").string()), "bad-image");
  EXPECT_NE(message_.find("compressed"), std::string::npos);
  write(image_, "oci:", "layout", "train:v1");
  const fs::path blob = path("layout") / "blobs/sha256" / image_.layers[1].blob.digest.hex();
  std::string bytes = read_file(blob);
  bytes[10] = static_cast<char>(bytes[10] ^ 1);
  write_file(blob, bytes);
  EXPECT_EQ(code_of("oci:" + path("layout").string()), "digest-mismatch");
  fs::remove(blob);
  EXPECT_EQ(code_of("oci:" + path("layout").string()), "bad-image");
}

}  // namespace
}  // namespace mlenv
