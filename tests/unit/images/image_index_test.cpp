#include "images/image_index.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "images/archive.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/random_image.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

Image image_for(const std::string& architecture, const std::string& variant) {
  ImageConfig config;
  config.architecture = architecture;
  config.variant = variant;
  return compose_image(config, {}, 0);
}

TEST(ImageIndex, IsTheSameForEver) {
  const Image amd64 = image_for("amd64", "");
  const Image arm64 = image_for("arm64", "v8");
  const ImageSet set = compose_index({arm64, amd64});
  // Computed by Python's json (sorted keys, no spaces) and hashlib from the same values.
  EXPECT_EQ(set.digest().str(),
            "sha256:ce87dad1bac93bca38e0229c26a1c21493d97e8ce37e83e8b9a360b895502bd5");
  EXPECT_EQ(set.digest(), Digest::of(set.index->bytes));
  EXPECT_EQ(set.index->bytes, compose_index({amd64, arm64}).index->bytes) << "whatever the order";
}

TEST(ImageIndex, SaysEachPlatformWithItsVariant) {
  const ImageSet set = compose_index({image_for("arm64", "v8"), image_for("amd64", "")});
  const json index = json::parse(set.index->bytes);
  EXPECT_EQ(index["mediaType"], kIndexType);
  ASSERT_EQ(index["manifests"].size(), 2U);
  EXPECT_EQ(index["manifests"][0]["platform"], (json{{"os", "linux"}, {"architecture", "amd64"}}));
  EXPECT_EQ(index["manifests"][1]["platform"],
            (json{{"os", "linux"}, {"architecture", "arm64"}, {"variant", "v8"}}));
  EXPECT_EQ(set.platform(0), "linux/amd64");
  EXPECT_EQ(set.platform(1), "linux/arm64") << "v8 goes without saying";
  EXPECT_EQ(index["manifests"][1]["digest"], set.images[1].digest().str());
}

TEST(ImageIndex, OfOthersIsKeptByteForByte) {
  const std::string text = R"({ "schemaVersion": 2, "manifests": [
    {"mediaType": "application/vnd.oci.image.manifest.v1+json", "size": 7, "digest": ")" +
                           Digest::of("x").str() + R"("} ]})";
  const ImageIndex index = parse_index(text);
  EXPECT_EQ(index.bytes, text);
  EXPECT_EQ(index.digest(), Digest::of(text));
  EXPECT_EQ(index.descriptor.media_type, kIndexType) << "that OCI 1.0 leaves out";
  EXPECT_EQ(index.entries.at(0).platform, "");
}

TEST(ImageIndex, RefusesWhatIsNone) {
  const std::string entry = R"("size":7,"digest":")" + Digest::of("x").str() + "\"";
  for (const std::string& text : std::initializer_list<std::string>{
           "", "[]", "{}", R"({"manifests":[]})", R"({"manifests":[{}]})", R"({"manifests":7})",
           R"({"manifests":[{"mediaType":"x","size":7,"digest":"sha256:short"}]})",
           R"({"config":{},"manifests":[{"mediaType":"x",)" + entry + "}]}",
           R"({"manifests":[{"mediaType":")" + std::string(kIndexType) + "\"," + entry + "}]}"}) {
    EXPECT_EQ(code_of([&] { (void)parse_index(text); }), "bad-image") << text;
  }
}

class ImageIndexStoreTest : public testing::Test {
 protected:
  /// For amd64 and arm64, sharing their lowest layers.
  ImageSet put_two() {
    const Image first = random_image(store_, 1, 3);
    ImageConfig config = first.settings;
    config.architecture = "arm64";
    config.variant = "v8";
    const Image second = compose_image(config, {first.layers[0], first.layers[1]}, 0);
    store_.put_image(second);
    ImageSet set = compose_index({second, first});
    store_.put_index(*set.index);
    return set;
  }
  /// The same with an attestation of the first, as BuildKit writes one.
  ImageSet put_with_attestation() {
    const ImageSet two = put_two();
    const Digest statement = store_.put(R"({"_type":"https://in-toto.io/Statement/v0.1"})");
    const std::string config =
        R"({"architecture":"unknown","os":"unknown","config":{},"rootfs":{"type":"layers","diff_ids":[")" +
        statement.str() + R"("]}})";
    const json manifest{{"schemaVersion", 2},
                        {"mediaType", kManifestType},
                        {"config", descriptor_of(store_.put(config), kConfigType)},
                        {"layers", {descriptor_of(statement, "application/vnd.in-toto+json")}}};
    Artifact artifact = parse_artifact(manifest.dump(), std::string(kManifestType));
    store_.put_artifact(artifact);
    json index = json::parse(two.index->bytes);
    json entry = descriptor_of(artifact.digest(), kManifestType);
    entry["platform"] = {{"os", "unknown"}, {"architecture", "unknown"}};
    index["manifests"].push_back(entry);
    ImageSet set{parse_index(index.dump()), two.images};
    set.artifacts.push_back(std::move(artifact));
    store_.put_index(*set.index);
    store_.tag(Reference::parse("both"), set.digest());
    return set;
  }
  json descriptor_of(const Digest& blob, std::string_view type) const {
    return {{"mediaType", type}, {"digest", blob.str()}, {"size", store_.size_of(blob).value()}};
  }
  std::vector<Store::Damage> verify(bool repair = false) const {
    return store_.verify(repair, [](std::string_view) {});
  }
  bool is_named() const { return store_.find_image("both").has_value(); }
  fs::path blob(const Digest& digest) const {
    return folder_.path() / "store" / "blobs" / digest.hex();
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
};

TEST_F(ImageIndexStoreTest, NamesLeadToAllOfIt) {
  const ImageSet set = put_two();
  store_.tag(Reference::parse("both"), set.digest());
  EXPECT_EQ(store_.find_image("both"), set.digest());
  EXPECT_EQ(store_.find_image(set.digest().str()), set.digest());
  store_.untag(Reference::parse("both"));
  EXPECT_EQ(store_.find_image(set.digest().hex().substr(0, 12)), set.digest()) << "without a name";
  const ImageSet found = store_.image_set(set.digest());
  ASSERT_EQ(found.images.size(), 2U);
  EXPECT_EQ(found.images[1].digest(), set.images[1].digest());
  EXPECT_EQ(found.layer_count(), 3U) << "shared ones count once";
  EXPECT_EQ(found.blobs().size(), 3U + 2U + 2U + 1U);
  EXPECT_FALSE(store_.image_set(set.images[0].digest()).index);
  EXPECT_EQ(code_of([&] { (void)store_.image(set.digest()); }), "bad-image");
  EXPECT_TRUE(verify().empty());
}

TEST_F(ImageIndexStoreTest, WantsItsImages) {
  const ImageSet set = compose_index({image_for("amd64", "")});
  EXPECT_EQ(code_of([&] { store_.put_index(*set.index); }), "absent");
}

TEST_F(ImageIndexStoreTest, VerifySaysWhichPlatformLacksWhat) {
  const ImageSet set = put_two();
  store_.tag(Reference::parse("both"), set.digest());
  fs::remove(blob(set.images[1].config_descriptor.digest));
  const std::vector<Store::Damage> damage = verify();
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_EQ(damage[0].what, "name both:latest");
  EXPECT_NE(damage[0].why.find("linux/arm64"), std::string::npos) << damage[0].why;
}

TEST_F(ImageIndexStoreTest, APartThatWasNotFetchedIsNoDamage) {
  const ImageSet set = put_two();
  store_.tag(Reference::parse("both"), set.digest());
  const Image& arm64 = set.images[1];
  fs::remove(blob(arm64.digest()));
  fs::remove(blob(arm64.config_descriptor.digest));
  EXPECT_TRUE(verify().empty());
  EXPECT_TRUE(verify(true).empty());
  const ImageSet found = store_.image_set(store_.find_image("both").value());
  ASSERT_EQ(found.images.size(), 1U);
  EXPECT_EQ(found.platform(0), "linux/amd64");
  ASSERT_EQ(found.absent.size(), 1U);
  EXPECT_EQ(found.absent[0].platform, "linux/arm64");
  QuietProgress quiet;
  const Output layout = Output::parse("oci:" + (folder_.path() / "part").string());
  EXPECT_EQ(code_of([&] { write_output(store_, found, Reference::parse("both"), layout, quiet); }),
            "absent");
}

TEST_F(ImageIndexStoreTest, WithNoneOfItsImagesItIsDamaged) {
  const ImageSet set = put_two();
  store_.tag(Reference::parse("both"), set.digest());
  for (const Image& image : set.images) fs::remove(blob(image.digest()));
  EXPECT_EQ(code_of([&] { (void)store_.image_set(set.digest()); }), "absent");
  const std::vector<Store::Damage> damage = verify(true);
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_EQ(damage[0].why, "none of its images is in the store");
  EXPECT_FALSE(is_named());
}

TEST_F(ImageIndexStoreTest, RepairKeepsTheNameForAWholeImage) {
  const ImageSet set = put_two();
  store_.tag(Reference::parse("both"), set.digest());
  store_.tag(Reference::parse("arm64"), set.images[1].digest());
  write_file(blob(set.images[1].config_descriptor.digest), "{}");
  EXPECT_EQ(verify().size(), 3U) << "the config, and both names";
  EXPECT_EQ(verify(true).size(), 3U);
  EXPECT_TRUE(verify().empty()) << "what is broken counts as not fetched";
  EXPECT_TRUE(is_named());
  EXPECT_FALSE(store_.find_image("arm64")) << "its only image is broken";
  EXPECT_EQ(store_.image_set(set.digest()).images.size(), 1U);
  store_.put_image(set.images[1]);
  EXPECT_TRUE(store_.image_set(set.digest()).absent.empty());
}

TEST_F(ImageIndexStoreTest, RepairTakesTheNameWhenNoImageIsWhole) {
  const ImageSet set = put_two();
  store_.tag(Reference::parse("both"), set.digest());
  for (const Image& image : set.images) fs::remove(blob(image.config_descriptor.digest));
  EXPECT_EQ(verify(true).size(), 1U);
  EXPECT_FALSE(is_named());
}

TEST_F(ImageIndexStoreTest, AttestationsAreNoImages) {
  const ImageSet set = put_with_attestation();
  EXPECT_TRUE(verify().empty());
  const ImageSet found = store_.image_set(set.digest());
  EXPECT_EQ(found.images.size(), 2U);
  EXPECT_EQ(found.platform(0), "linux/amd64");
  EXPECT_EQ(found.platform(1), "linux/arm64");
  ASSERT_EQ(found.artifacts.size(), 1U);
  EXPECT_EQ(found.artifacts[0].type, "application/vnd.in-toto+json");
  EXPECT_EQ(found.blobs(), set.blobs());
  EXPECT_EQ(found.blobs().size(), 3U + 2U + 2U + 3U + 1U);
  EXPECT_EQ(found.layer_count(), 3U);
}

TEST_F(ImageIndexStoreTest, AnAttestationThatLacksAPartIsBroken) {
  const ImageSet set = put_with_attestation();
  const Artifact& attestation = set.artifacts[0];
  fs::remove(blob(attestation.blobs[1].digest));
  const std::vector<Store::Damage> damage = verify(true);
  ASSERT_EQ(damage.size(), 1U);
  EXPECT_NE(damage[0].why.find(attestation.blobs[1].digest.str()), std::string::npos);
  EXPECT_TRUE(is_named());
  EXPECT_TRUE(verify().empty());
  EXPECT_EQ(store_.image_set(set.digest()).absent.size(), 1U);
}

TEST(Artifact, IsToldFromAnImageByPlatformOrConfig) {
  const auto manifest = [](std::string_view config) {
    return R"({"schemaVersion":2,"config":{"mediaType":")" + std::string(config) +
           R"("},"layers":[]})";
  };
  EXPECT_FALSE(is_artifact("linux/amd64", manifest(kConfigType)));
  EXPECT_FALSE(is_artifact("", manifest("application/vnd.docker.container.image.v1+json")));
  EXPECT_TRUE(is_artifact("unknown/unknown", manifest(kConfigType)));
  EXPECT_TRUE(is_artifact("linux/amd64", manifest("application/vnd.oci.empty.v1+json")));
  EXPECT_TRUE(is_artifact("", R"({"mediaType":"application/vnd.oci.artifact.manifest.v1+json"})"));
  for (const char* text : {"", "[]", "7", "{}", "{\"config\":7}"}) {
    EXPECT_FALSE(is_artifact("linux/amd64", text)) << text;
  }
  for (const char* text : {"", "[]", R"({"layers":7})", R"({"layers":[{"digest":"x"}]})"}) {
    EXPECT_EQ(code_of([&] { (void)parse_artifact(text, ""); }), "bad-image") << text;
  }
}

TEST_F(ImageIndexStoreTest, ALayoutHoldsItUnderOneName) {
  const ImageSet set = put_two();
  QuietProgress quiet;
  const fs::path folder = folder_.path() / "layout";
  write_output(store_, set, Reference::parse("both:v1"), Output::parse("oci:" + folder.string()),
               quiet);
  const json index = json::parse(read_file(folder / "index.json"));
  ASSERT_EQ(index["manifests"].size(), 1U);
  EXPECT_EQ(index["manifests"][0]["mediaType"], kIndexType);
  EXPECT_EQ(index["manifests"][0]["digest"], set.digest().str());
  EXPECT_FALSE(index["manifests"][0].contains("platform"));
  EXPECT_EQ(list_folder(folder / "blobs" / "sha256").size(), set.blobs().size());
  EXPECT_EQ(code_of([&] {
              write_output(store_, set, Reference::parse("both"),
                           Output::parse("docker-archive:" + (folder_.path() / "x").string()),
                           quiet);
            }),
            "bad-output");
}

}  // namespace
}  // namespace mlenv
