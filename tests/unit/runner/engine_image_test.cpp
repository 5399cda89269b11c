#include "runner/engine/engine_image.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/tar.hpp"

namespace mlenv {
namespace {

Layer layer_of_type(const std::string& type, const std::string& name) {
  return {{type, Digest::of("blob " + name), 1000}, Digest::of("tar " + name), 0, name};
}

TEST(EngineImage, HasLayersAndNothingElse) {
  ImageConfig config;
  config.architecture = "arm64";
  config.variant = "v8";
  config.env = {"NVIDIA_VISIBLE_DEVICES=all"};
  config.entrypoint = {"/entry"};
  config.command = {"x"};
  config.workdir = "/w";
  config.user = "7";
  config.labels = {{"io.containers.capabilities", "NET_BIND_SERVICE"}};
  const std::string docker = "application/vnd.docker.image.rootfs.diff.tar";
  const std::string oci = "application/vnd.oci.image.layer.v1.tar";
  const Image bare =
      bare_image(compose_image(config,
                               {layer_of_type(docker + ".gzip", "a"), layer_of_type(docker, "b"),
                                layer_of_type(oci + "+zstd", "c"), layer_of_type(oci, "d")},
                               1'700'000'000));
  const auto manifest = nlohmann::json::parse(bare.manifest);
  const auto settings = nlohmann::json::parse(bare.config);
  EXPECT_EQ(settings.at("config"), nlohmann::json::object());
  EXPECT_EQ(settings.at("architecture"), "arm64");
  EXPECT_EQ(settings.at("variant"), "v8");
  EXPECT_EQ(settings.at("rootfs").at("diff_ids").at(2), Digest::of("tar c").str());
  EXPECT_EQ(bare.manifest.find("annotations"), std::string::npos);
  const std::vector<std::string> types{oci + "+gzip", oci, oci + "+zstd", oci};
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(manifest.at("layers").at(i).at("mediaType"), types[i]);
  }
  EXPECT_EQ(manifest.at("layers").at(1).at("digest"), Digest::of("blob b").str());
  EXPECT_EQ(bare.digest(), Digest::of(bare.manifest));
}

TEST(EngineImage, HasAFolderForDevicesOverAll) {
  const std::string oci = "application/vnd.oci.image.layer.v1.tar";
  const Image image = compose_image({}, {layer_of_type(oci, "a")}, 0);
  const Image bare = bare_image(image, Over::device_folder);
  ASSERT_EQ(bare.layers.size(), 2);
  const Layer& top = bare.layers.back();
  const std::string tar = device_folder_tar();
  EXPECT_EQ(top.blob.media_type, oci);
  EXPECT_EQ(top.blob.digest, Digest::of(tar));
  EXPECT_EQ(top.blob.size_bytes, tar.size());
  EXPECT_EQ(top.diff_id, Digest::of(tar));
  EXPECT_EQ(bare_image(image).layers.size(), 1);
  std::vector<std::string> found;
  MemorySource source{as_bytes(tar)};
  read_tar(source, [&](const TarEntry& entry, Source&) {
    EXPECT_EQ(entry.type, TarEntry::Type::folder);
    EXPECT_EQ(entry.mode, 0755);
    found.push_back(entry.path);
  });
  EXPECT_EQ(found, std::vector<std::string>{"dev"});
}

}  // namespace
}  // namespace mlenv
