#include "images/oci.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

Layer gzip_layer(const std::string& name) {
  return {{std::string(kLayerGzipType), Digest::of("blob " + name), 1000 + name.size()},
          Digest::of("tar " + name),
          0,
          name};
}

Image an_image() {
  ImageConfig config;
  config.env = {"PATH=/opt/venv/bin:/usr/bin", "LANG=C.UTF-8"};
  config.entrypoint = {"/sbin/entry"};
  config.command = {"python", "train.py"};
  config.workdir = "/workspace";
  config.user = "1000:1000";
  config.labels = {{"dev.mlenv.lock", "sha256:x"}, {"b", "2"}};
  return compose_image(config, {gzip_layer("debian:bookworm"), gzip_layer("torch 2.15.0")},
                       1'700'000'000);
}

TEST(Oci, SizesAreLookedAtBeforeBytes) {
  const auto manifest = [](std::uint64_t size, const std::string& more) {
    return fmt::format(R"({{"schemaVersion":2,"layers":[],)"
                       R"("config":{{"mediaType":"c","digest":"{}","size":{}}}{}}})",
                       Digest::of("x").str(), size, more);
  };
  EXPECT_EQ(config_of_manifest(manifest(1000, "")).size_bytes, 1000U);
  EXPECT_EQ(code_of([&] { (void)config_of_manifest(manifest(std::uint64_t{200} << 30U, "")); }),
            "too-large");
  const std::string many = R"(,"a":[)" + std::string(200'000, ',') + "]";
  EXPECT_EQ(code_of([&] { (void)config_of_manifest(manifest(1000, many)); }), "too-large");
  // In a text they are no values.
  const std::string quoted = R"(,"a":"\")" + std::string(200'000, ',') + '"';
  EXPECT_EQ(config_of_manifest(manifest(1000, quoted)).size_bytes, 1000U);
  EXPECT_EQ(code_of([] { (void)parse_settings(std::string(5U << 20U, ' ')); }), "too-large");
}

TEST(Oci, AnImageIsTheSameForEver) {
  const Image image = an_image();
  EXPECT_EQ(image.digest(), Digest::of(image.manifest));
  // Computed by Python's json (sorted keys, no spaces) and hashlib from the same values.
  EXPECT_EQ(image.digest().str(),
            "sha256:7d5dd4e186d9b88db93e11c4eeb0d0b9ccb0192eb72275f0b04f77862b44ed4c");
}

TEST(Oci, ConfigSaysWhatRuns) {
  const auto config = nlohmann::json::parse(an_image().config);
  EXPECT_EQ(config["architecture"], "amd64");
  EXPECT_EQ(config["os"], "linux");
  EXPECT_EQ(config["created"], "2023-11-14T22:13:20Z");
  EXPECT_EQ(config["config"]["Cmd"], (std::vector<std::string>{"python", "train.py"}));
  EXPECT_EQ(config["config"]["Labels"]["b"], "2");
  EXPECT_EQ(config["rootfs"]["type"], "layers");
  EXPECT_EQ(config["rootfs"]["diff_ids"][1], Digest::of("tar torch 2.15.0").str());
  EXPECT_EQ(config["history"][1]["comment"], "torch 2.15.0");
  EXPECT_EQ(config["history"].size(), 2U);
}

TEST(Oci, EmptyValuesAreLeftOut) {
  const Image image = compose_image({}, {}, 0);
  const auto config = nlohmann::json::parse(image.config);
  EXPECT_TRUE(config["config"].empty());
  EXPECT_EQ(config["created"], "1970-01-01T00:00:00Z");
}

TEST(Oci, ParsingGivesBackWhatWasComposed) {
  const Image image = an_image();
  const Image parsed = parse_image(image.manifest, image.config);
  EXPECT_EQ(parsed.layers, image.layers);
  EXPECT_EQ(parsed.manifest_descriptor, image.manifest_descriptor);
  EXPECT_EQ(parsed.config_descriptor, image.config_descriptor);
  EXPECT_EQ(parsed.settings.env, image.settings.env);
  EXPECT_EQ(parsed.settings.entrypoint, image.settings.entrypoint);
  EXPECT_EQ(parsed.settings.command, image.settings.command);
  EXPECT_EQ(parsed.settings.workdir, image.settings.workdir);
  EXPECT_EQ(parsed.settings.user, image.settings.user);
  EXPECT_EQ(parsed.settings.labels, image.settings.labels);
}

TEST(Oci, ReadsDockerImages) {
  const std::string config =
      R"({"architecture":"arm64","os":"linux","config":{"Env":null,"Cmd":["sh"],"Labels":null},)"
      R"("rootfs":{"type":"layers","diff_ids":[")" +
      Digest::of("tar").str() + R"("]}})";
  nlohmann::json manifest = {{"schemaVersion", 2},
                             {"mediaType", kDockerManifestType},
                             {"config",
                              {{"mediaType", "application/vnd.docker.container.image.v1+json"},
                               {"digest", Digest::of(config).str()},
                               {"size", config.size()}}},
                             {"layers",
                              {{{"mediaType", "application/vnd.docker.image.rootfs.diff.tar.gzip"},
                                {"digest", Digest::of("blob").str()},
                                {"size", 7}}}}};
  const Image image = parse_image(manifest.dump(), config);
  EXPECT_EQ(image.manifest_descriptor.media_type, kDockerManifestType);
  EXPECT_EQ(image.settings.architecture, "arm64");
  EXPECT_EQ(image.settings.command, std::vector<std::string>{"sh"});
  ASSERT_EQ(image.layers.size(), 1U);
  EXPECT_EQ(image.layers[0].blob.size_bytes, 7U);
  EXPECT_EQ(image.layers[0].diff_id, Digest::of("tar"));
}

TEST(Oci, RefusesWhatDoesNotFitTogether) {
  const Image image = an_image();
  EXPECT_EQ(code_of([&] { parse_image(image.manifest, image.config + " "); }), "bad-image");
  EXPECT_EQ(code_of([&] { parse_image("{", image.config); }), "bad-image");
  EXPECT_EQ(code_of([&] { parse_image("[]", image.config); }), "bad-image");
  EXPECT_EQ(code_of([&] { config_of_manifest(R"({"schemaVersion":1})"); }), "bad-image");
  EXPECT_EQ(code_of([&] { config_of_manifest(R"({"schemaVersion":2,"manifests":[]})"); }),
            "bad-image");

  nlohmann::json fewer = nlohmann::json::parse(image.manifest);
  fewer["layers"].erase(0);
  EXPECT_EQ(code_of([&] { parse_image(fewer.dump(), image.config); }), "bad-image");
  nlohmann::json odd = nlohmann::json::parse(image.manifest);
  odd["layers"][0]["digest"] = "md5:abc";
  EXPECT_EQ(code_of([&] { parse_image(odd.dump(), image.config); }), "bad-image");
  odd["layers"][0]["digest"] = 12;
  EXPECT_EQ(code_of([&] { parse_image(odd.dump(), image.config); }), "bad-image");
}

}  // namespace
}  // namespace mlenv
