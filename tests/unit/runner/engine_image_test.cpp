#include "runner/engine/engine_image.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace mlenv {
namespace {

Layer a_layer(const std::string& type, const std::string& name) {
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
  const Image bare = bare_image(compose_image(config,
                                              {a_layer(docker + ".gzip", "a"), a_layer(docker, "b"),
                                               a_layer(oci + "+zstd", "c"), a_layer(oci, "d")},
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

}  // namespace
}  // namespace mlenv
