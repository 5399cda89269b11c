#include "images/archive_load.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "images/archive.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/random_image.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

class ArchiveLoadTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const ImageSet& image, const std::string& output, const std::string& name) {
    write_output(store_, image, Reference::parse(name), Output::parse(output), quiet_);
  }
  std::vector<LoadedImage> load(const std::string& from, const LoadSettings& settings = {}) {
    fs::remove_all(path("fresh"));
    Store fresh{path("fresh")};
    std::vector<LoadedImage> all;
    try {
      all = load_images(fresh, LoadSource::parse(from), settings, quiet_);
    } catch (const Error& error) {
      message_ = error.what();
      EXPECT_TRUE(fresh.names().empty());
      throw;
    }
    for (const LoadedImage& one : all) {
      EXPECT_EQ(fresh.image_set(one.image.digest()).images.size(), one.image.images.size());
    }
    EXPECT_TRUE(fresh.verify(false, [](std::string_view) {}).empty());
    return all;
  }
  std::string code(const std::string& from, const LoadSettings& settings = {}) {
    return code_of([&] { (void)load(from, settings); });
  }
  static std::vector<std::string> names(const LoadedImage& one) {
    std::vector<std::string> all;
    for (const Reference& name : one.names) all.push_back(name.str());
    return all;
  }
  /// One layer, whose content says which.
  Image image_for(const std::string& architecture) {
    ImageConfig config;
    config.architecture = architecture;
    const Layer layer = put_layer(store_, test_tar({test_file("for", architecture)}), "one");
    Image image = compose_image(config, {layer}, 0);
    store_.put_image(image);
    return image;
  }
  fs::path blob(const std::string& layout, const Digest& digest) const {
    return folder_.path() / layout / "blobs" / "sha256" / digest.hex();
  }
  json index_of(const std::string& layout) const {
    return json::parse(read_file(folder_.path() / layout / "index.json"));
  }
  void put_index(const std::string& layout, const json& index) const {
    write_file(folder_.path() / layout / "index.json", index.dump());
  }

  TemporaryFolder folder_{temporary_root()};
  Store store_{folder_.path() / "store"};
  Image image_{random_image(store_, 5, 3)};
  std::string message_;
  QuietProgress quiet_;
};

TEST_F(ArchiveLoadTest, WhatIsSavedIsLoadedWhateverItsForm) {
  write(image_, "oci:" + path("layout"), "host:5000/team/train:v1");
  write(image_, "oci-archive:" + path("oci.tar"), "host:5000/team/train:v1");
  write(image_, "docker-archive:" + path("docker.tar"), "host:5000/team/train:v1");
  for (const std::string& from :
       {path("layout"), "oci:" + path("layout"), "oci:" + path("layout") + ":v1", path("oci.tar"),
        path("docker.tar"), "docker-archive:" + path("docker.tar"),
        "oci-archive:" + path("docker.tar") + ":host:5000/team/train:v1"}) {
    const std::vector<LoadedImage> all = load(from);
    ASSERT_EQ(all.size(), 1U) << from;
    EXPECT_EQ(all[0].image.digest(), image_.digest()) << from;
    EXPECT_EQ(names(all[0]), (Strings{"host:5000/team/train:v1"})) << from;
  }
}

TEST_F(ArchiveLoadTest, AnArchiveMayBeCompressedAsAWhole) {
  write(image_, "oci-archive:" + path("oci.tar"), "train:v1");
  write_file(path("oci.tar.gz"), test_gzip(read_file(path("oci.tar"))));
  EXPECT_EQ(load(path("oci.tar.gz")).at(0).image.digest(), image_.digest());
  const std::string whole = read_file(path("oci.tar.gz"));
  write_file(path("cut.tar.gz"), whole.substr(0, whole.size() / 2));
  EXPECT_EQ(code(path("cut.tar.gz")), "bad-gzip");
}

TEST_F(ArchiveLoadTest, AllImagesAreLoadedAndOneByItsName) {
  const Image other = random_image(store_, 6, 2);
  write(image_, "oci:" + path("layout"), "train:v1");
  write(other, "oci:" + path("layout"), "train:v2");
  write(other, "oci:" + path("layout"), "train:latest");
  const std::vector<LoadedImage> all = load(path("layout"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(names(all[0]), (Strings{"train:v1"}));
  EXPECT_EQ(all[1].image.digest(), other.digest());
  EXPECT_EQ(names(all[1]), (Strings{"train:v2", "train:latest"}));
  const std::vector<LoadedImage> one = load("oci:" + path("layout") + ":train:v2");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(names(one[0]), (Strings{"train:v2"})) << "the name that was asked for";
  EXPECT_EQ(load("oci:" + path("layout") + ":train").at(0).image.digest(), other.digest())
      << "`latest` goes without saying";

  EXPECT_EQ(code("oci:" + path("layout") + ":v3"), "not-found");
  EXPECT_NE(message_.find("`train:v1`"), std::string::npos) << message_;
  EXPECT_EQ(code(path("layout"), {"", true}), "ambiguous");
  EXPECT_NE(message_.find("`train:latest`, `train:v1`, `train:v2`"), std::string::npos) << message_;
  EXPECT_TRUE(fs::is_empty(folder_.path() / "fresh" / "blobs")) << "refused before it is read";
}

TEST_F(ArchiveLoadTest, ATagAloneIsNoName) {
  write(image_, "oci:" + path("layout"), "train:v1");
  json index = index_of("layout");
  json& notes = index["manifests"][0]["annotations"];
  notes.erase("io.containerd.image.name");
  const auto named = [&](const std::string& ref_name) {
    notes["org.opencontainers.image.ref.name"] = ref_name;
    put_index("layout", index);
    return names(load(path("layout")).at(0));
  };
  EXPECT_EQ(named("v1"), Strings{});
  EXPECT_EQ(named("team/train"), (Strings{"team/train:latest"}));
  EXPECT_EQ(named("localhost/train:v1"), (Strings{"localhost/train:v1"}));
  EXPECT_EQ(named("NO name: at all"), Strings{}) << "another tool's words";
  index["manifests"][0].erase("annotations");
  put_index("layout", index);
  EXPECT_EQ(names(load(path("layout")).at(0)), Strings{});
}

/// Who runs `host/train@sha256:…` relies on getting just that.
TEST_F(ArchiveLoadTest, ADigestInANameIsTheImagesOwn) {
  write(image_, "oci:" + path("layout"), "host/train:v1");
  json index = index_of("layout");
  const auto named = [&](const std::string& name) {
    index["manifests"][0]["annotations"] = {{"io.containerd.image.name", name},
                                            {"org.opencontainers.image.ref.name", name}};
    put_index("layout", index);
    return names(load(path("layout")).at(0));
  };
  const std::string own = image_.digest().str();
  const std::string other = "sha256:" + std::string(64, '0');
  EXPECT_EQ(named("host/train@" + own), Strings{"host/train@" + own});
  EXPECT_EQ(named("host/train:v1@" + own), Strings{"host/train:v1@" + own});
  EXPECT_EQ(named("host/train@" + other), Strings{});
  EXPECT_EQ(named("host/train:v1@" + other), Strings{});
}

TEST_F(ArchiveLoadTest, WhatDockerCallsByAShortNameHasIt) {
  write(image_, "oci:" + path("layout"), "docker.io/library/train:v1");
  EXPECT_EQ(names(load(path("layout")).at(0)), (Strings{"docker.io/library/train:v1"}));
  const auto with_tags = [&](const json& tags) {
    write_file(folder_.path() / "layout" / "manifest.json",
               json::array({{{"RepoTags", tags}}}).dump());
    return names(load(path("layout")).at(0));
  };
  EXPECT_EQ(with_tags({"train:v1"}), (Strings{"train:v1"}));
  EXPECT_EQ(load("oci:" + path("layout") + ":train:v1").size(), 1U);
  EXPECT_EQ(load("oci:" + path("layout") + ":docker.io/library/train:v1").size(), 1U);
  EXPECT_EQ(with_tags({"other:v1"}), (Strings{"docker.io/library/train:v1"}));
  EXPECT_EQ(with_tags({"docker.io/library/train:v1"}), (Strings{"docker.io/library/train:v1"}));
  EXPECT_EQ(with_tags(nullptr), (Strings{"docker.io/library/train:v1"}));
}

TEST_F(ArchiveLoadTest, AnIndexIsLoadedWhole) {
  const ImageSet set = compose_index({image_for("amd64"), image_for("arm64")});
  store_.put_index(*set.index);
  write(set, "oci-archive:" + path("both.tar"), "train:v1");
  const std::vector<LoadedImage> all = load(path("both.tar"));
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].image.digest(), set.digest());
  EXPECT_EQ(all[0].image.images.size(), 2U);
  for (const Image& one : set.images) {
    const std::string platform = "linux/" + one.settings.architecture;
    EXPECT_EQ(load(path("both.tar"), {platform, false}).at(0).image.digest(), one.digest());
  }
  EXPECT_EQ(code(path("both.tar"), {"linux/riscv64", false}), "not-found");
}

TEST_F(ArchiveLoadTest, OfAnIndexInPartTheImageThatIsThere) {
  const ImageSet set =
      compose_index({image_for("arm64"), image_for("riscv64"), image_for("s390x")});
  const auto lose = [&](const Image& one) {
    fs::remove(blob("layout", one.layers.at(0).blob.digest));
  };
  store_.put_index(*set.index);
  write(set, "oci:" + path("layout"), "train:v1");
  lose(set.images.at(0));
  EXPECT_EQ(load(path("layout"), {"linux/s390x", false}).at(0).image.digest(),
            set.images.at(2).digest());
  EXPECT_EQ(code(path("layout"), {"linux/arm64", false}), "not-found");
  EXPECT_NE(message_.find("does not hold all of it"), std::string::npos) << message_;
  EXPECT_EQ(code(path("layout")), "not-found") << "two are left, neither for this machine";
  lose(set.images.at(2));
  const std::vector<LoadedImage> all = load(path("layout"));
  EXPECT_EQ(all.at(0).image.digest(), set.images.at(1).digest()) << "the only one";
  EXPECT_FALSE(all.at(0).image.index);
  EXPECT_EQ(names(all.at(0)), (Strings{"train:v1"}));
}

TEST_F(ArchiveLoadTest, EntriesOfOneNameAreOneImageForSeveralPlatforms) {
  const Image arm64 = image_for("arm64");
  write(image_for("riscv64"), "oci:" + path("layout"), "train:v1");
  write(arm64, "oci:" + path("layout"), "train:v2");
  json index = index_of("layout");
  index["manifests"][1]["annotations"] = index["manifests"][0]["annotations"];
  put_index("layout", index);
  EXPECT_EQ(load(path("layout"), {"linux/arm64", false}).at(0).image.digest(), arm64.digest());
  EXPECT_EQ(code(path("layout"), {"linux/s390x", false}), "not-found");
}

TEST_F(ArchiveLoadTest, DockersOwnArchiveHasNoManifests) {
  const Image other = random_image(store_, 6, 2);
  std::vector<TestEntry> members;
  json entries = json::array();
  const auto add = [&](const Image& one, const json& tags) {
    json layers = json::array();
    for (const Layer& layer : one.layers) {
      layers.push_back(layer.diff_id.hex() + "/layer.tar");
      const auto source = store_.open(layer.blob.digest);
      StringSink inflated;
      gunzip(*source, inflated);
      members.push_back(test_file(layers.back(), inflated.text));
    }
    const std::string config = one.config_descriptor.digest.hex() + ".json";
    members.push_back(test_file(config, one.config));
    entries.push_back({{"Config", config}, {"RepoTags", tags}, {"Layers", layers}});
  };
  add(image_, json::array({"train:v1", "host:5000/train:v1"}));
  add(other, json());
  members.push_back(test_file("manifest.json", entries.dump()));
  write_file(path("docker.tar"), test_tar(members));
  const std::vector<LoadedImage> all = load(path("docker.tar"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].image.images.at(0).config, image_.config);
  EXPECT_EQ(names(all[0]), (Strings{"host:5000/train:v1", "train:v1"}));
  EXPECT_EQ(names(all[1]), Strings{});
  EXPECT_EQ(all[0].image.digest(), load(path("docker.tar")).at(0).image.digest());
  const std::vector<LoadedImage> one = load("docker-archive:" + path("docker.tar") + ":train:v1");
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(names(one[0]), (Strings{"train:v1"}));
  EXPECT_EQ(code("docker-archive:" + path("docker.tar") + ":other"), "not-found");
  EXPECT_EQ(code(path("docker.tar"), {"linux/s390x", false}), "not-found");
  EXPECT_EQ(code(path("docker.tar"), {"", true}), "ambiguous");
}

TEST_F(ArchiveLoadTest, OtherThingsAreRefused) {
  EXPECT_EQ(code(path("nowhere")), "absent");
  fs::create_directory(path("empty"));
  EXPECT_EQ(code(path("empty")), "bad-image");
  write_file(path("text"), std::string(2000, 'x'));
  EXPECT_EQ(code(path("text")), "bad-tar");
  write_file(path("other.tar"), test_tar({test_file("readme", "hello")}));
  EXPECT_EQ(code(path("other.tar")), "bad-image");
  EXPECT_NE(message_.find("index.json"), std::string::npos) << message_;
  write_file(path("packed.tar.bz2"), "BZh91AY&SY");
  EXPECT_EQ(code(path("packed.tar.bz2")), "bad-image");
  EXPECT_NE(message_.find("packed.tar.bz2"), std::string::npos) << message_;

  write(image_, "oci:" + path("layout"), "train:v1");
  const fs::path layer = blob("layout", image_.layers[1].blob.digest);
  std::string bytes = read_file(layer);
  bytes[10] = static_cast<char>(bytes[10] ^ 1);
  write_file(layer, bytes);
  EXPECT_EQ(code(path("layout")), "digest-mismatch");
  fs::remove(layer);
  EXPECT_EQ(code(path("layout")), "bad-image");
  const fs::path config = blob("layout", image_.config_descriptor.digest);
  write_file(config, read_file(config) + " ");
  EXPECT_EQ(code(path("layout")), "digest-mismatch");
  for (const char* text : {"", "[]", "{}", R"({"manifests":[7]})", R"({"manifests":[{}]})",
                           R"({"manifests":[{"digest":"sha256:x"}]})"}) {
    write_file(folder_.path() / "layout" / "index.json", text);
    EXPECT_EQ(code(path("layout")), "bad-image") << text;
  }
  put_index("layout", {{"manifests", json::array()}});
  EXPECT_EQ(code(path("layout")), "not-found");
}

TEST_F(ArchiveLoadTest, AnIndexThatIsTooLargeIsNotCalledAbsent) {
  write(image_, "oci:" + path("layout"), "train:v1");
  const std::string index =
      read_file(folder_.path() / "layout" / "index.json") + std::string(5U << 20U, ' ');
  write_file(folder_.path() / "layout" / "index.json", index);
  EXPECT_EQ(code(path("layout")), "too-large");
  EXPECT_NE(message_.find("index.json"), std::string::npos) << message_;
  write_file(path("large.tar"),
             test_tar({test_file("oci-layout", "{}"), test_file("index.json", index)}));
  EXPECT_EQ(code(path("large.tar")), "too-large");
}

}  // namespace
}  // namespace mlenv
