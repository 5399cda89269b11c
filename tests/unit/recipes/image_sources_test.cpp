#include "recipes/image_sources.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

Recipe with(std::string_view sources) {
  return parse_recipe("name: x\nbase: debian:bookworm\n" + std::string(sources), "x.yaml");
}

TEST(ImageSources, NoneForARecipeWithoutSources) {
  EXPECT_TRUE(image_sources(with("")).empty());
  EXPECT_EQ(digest_of(image_sources(with(""))), std::nullopt);
}

TEST(ImageSources, AptPipAndUv) {
  const auto files =
      image_sources(with("sources:\n"
                         "  debian: [https://a.example/debian, {uri: https://b.example/x, suite: "
                         "y, components: [p, q]}]\n"
                         "  pypi: [https://c.example/simple, https://d.example/cpu]\n"));
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].path, "etc/apt/sources.list.d/mlenv.sources");
  EXPECT_EQ(files[0].text,
            "# The recipe's own package sources, put here by `mlenv build`\n"
            "\nTypes: deb\nURIs: https://a.example/debian\nSuites: bookworm\nComponents: main\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n"
            "\nTypes: deb\nURIs: https://b.example/x\nSuites: y\nComponents: p q\n"
            "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n");
  EXPECT_EQ(files[1].path, "etc/pip.conf");
  EXPECT_EQ(files[1].text,
            "# The recipe's own package sources, put here by `mlenv build`\n"
            "[global]\nindex-url = https://c.example/simple\n"
            "extra-index-url =\n    https://d.example/cpu\n");
  EXPECT_EQ(files[2].path, "etc/uv/uv.toml");
  EXPECT_EQ(files[2].text,
            "# The recipe's own package sources, put here by `mlenv build`\n"
            "\n[[index]]\nurl = \"https://c.example/simple\"\ndefault = true\n"
            "\n[[index]]\nurl = \"https://d.example/cpu\"\n");
  EXPECT_NE(digest_of(files), std::nullopt);
}

TEST(ImageSources, WhatOnlyThisMachineReachesIsLeftOut) {
  EXPECT_TRUE(
      image_sources(with("sources: {debian: file:///srv/debian, pypi: file:///srv/simple}\n"))
          .empty());
}

TEST(ImageSources, AKeyringOfOnesOwnComesAlong) {
  const TemporaryFolder folder{fs::temp_directory_path()};
  const fs::path keyring = folder.path() / "own.gpg";
  write_file(keyring, "key");
  const std::string recipe =
      "sources: {debian: [{uri: https://a.example/d, signed-by: " + keyring.string() + "}]}\n";
  const auto files = image_sources(with(recipe));
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].path, "etc/apt/keyrings/own.gpg");
  EXPECT_EQ(files[0].text, "key");
  EXPECT_NE(files[1].text.find("Signed-By: /etc/apt/keyrings/own.gpg\n"), std::string::npos);
  write_file(keyring, "another");
  EXPECT_NE(digest_of(image_sources(with(recipe))), digest_of(files));
  fs::remove(keyring);
  EXPECT_THROW((void)image_sources(with(recipe)), Error);
}

}  // namespace
}  // namespace mlenv
