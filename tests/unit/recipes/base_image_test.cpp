#include "recipes/base_image.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

std::string base_mistakes(const std::string& text) {
  try {
    parse_recipe(text, "r.yaml");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

Lock lock_on_base() {
  Lock lock;
  lock.request = {.base = "registry.example/team/base:1",
                  .python = {},
                  .framework = {},
                  .cuda = {},
                  .packages = {"six"},
                  .system = {}};
  lock.settings.name = "a";
  lock.python = "3.12.7";
  lock.base = LockedBase{
      .manifest = Digest::of("manifest"),
      .config = {std::string(kConfigType), Digest::of("config"), 1234},
      .layers = {{{std::string(kLayerGzipType), Digest::of("blob"), 99}, Digest::of("tar"), 0, {}}},
      .interpreter = "/usr/local/bin/python3.12",
      .glibc = "2.41"};
  lock.revision = least_revision(lock);
  return lock;
}

std::string base_lock_refusal(std::string_view text) {
  try {
    parse_lock(text, "r.lock");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string base_lock_without_checksum(const Lock& lock) {
  std::string text = render_lock(lock);
  const std::size_t at = text.find("checksum");
  return text.erase(at, text.find('\n', at) + 1 - at);
}

std::string base_lock_with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(BaseImage, TextsNameFilesOrARegistry) {
  const auto archive = parse_base_image("oci-archive:base.tar:v1");
  EXPECT_TRUE(std::holds_alternative<ArchivedImage>(std::get<BaseImage>(archive)));
  const auto remote = parse_base_image("localhost:5000/base@" + Digest::of("x").str());
  EXPECT_EQ(std::get<Reference>(std::get<BaseImage>(remote)).digest(), Digest::of("x"));
  EXPECT_TRUE(says(std::get<std::string>(parse_base_image("oci:")), "names no folder"));
  EXPECT_TRUE(says(std::get<std::string>(parse_base_image("python:3.12")), "no default registry"));
  EXPECT_TRUE(says(std::get<std::string>(parse_base_image("registry.example/A")), "upper-case"));
}

TEST(BaseImage, LayerTypesOfDockerAreRenamed) {
  EXPECT_EQ(oci_layer_type("application/vnd.docker.image.rootfs.diff.tar.gzip"), kLayerGzipType);
  EXPECT_EQ(oci_layer_type(kLayerGzipType), kLayerGzipType);
  EXPECT_EQ(oci_layer_type("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"),
            std::nullopt);
}

TEST(BaseImage, ARecipeIsReadWithIt) {
  const Recipe recipe = parse_recipe("name: a\nbase: oci:../base:v1\npackages: [six]\n", "r.yaml");
  EXPECT_TRUE(recipe.base_is_image);
  EXPECT_EQ(recipe.base.text, "oci:../base:v1");
  EXPECT_EQ(recipe.workdir, "");
  EXPECT_EQ(parse_recipe("name: a\nbase: oci:b\nworkdir: /w\n", "r.yaml").workdir, "/w");
  EXPECT_FALSE(parse_recipe("name: a\nbase: debian:bookworm\n", "r.yaml").base_is_image);
}

TEST(BaseImage, KeysThatDoNotFitAreMistakes) {
  EXPECT_EQ(base_mistakes("name: a\nbase: oci:b\nsystem: [git]\n"), "");
  EXPECT_TRUE(
      says(base_mistakes("name: a\nbase: oci:b\nsources: {debian: \"https://m.example/d\"}\n"),
           "needs its `suite`"));
}

TEST(BaseImage, ALockSaysItAndIsRead) {
  const Lock lock = lock_on_base();
  EXPECT_EQ(lock.revision, Lock::kWholeRecipe);
  EXPECT_EQ(parse_lock(render_lock(lock), "r.lock"), lock);
  EXPECT_EQ(lock.python_program(), "/usr/local/bin/python3.12");
  EXPECT_EQ(lock.python_minor(), "3.12");
}

TEST(BaseImage, ALockHasThePackagesOnTop) {
  Lock lock = lock_on_base();
  lock.request.system = {"less"};
  lock.debs = {{"less", "590-2", "amd64", "pool/main/l/less/less_590-2_amd64.deb", 131912,
                Digest::of("less")}};
  EXPECT_TRUE(says(base_lock_refusal(render_lock(lock)), "an image that is no `distribution`"));
  lock.distribution = "debian";
  lock.suite = "bookworm";
  EXPECT_EQ(parse_lock(render_lock(lock), "r.lock"), lock);
}

TEST(BaseImage, ALockThatContradictsItselfIsRefused) {
  const std::string text = base_lock_without_checksum(lock_on_base());
  const auto refusal = [&](std::string_view from, std::string_view to) {
    return base_lock_refusal(base_lock_with(text, from, to));
  };
  EXPECT_TRUE(says(refusal("revision = 2", "revision = 1"), "locks of revision 1 have no `base`"));
  EXPECT_TRUE(says(refusal("interpreter = \"/usr/local/bin/python3.12\"\n", ""), "go together"));
  EXPECT_TRUE(says(refusal("/usr/local/bin/python3.12", "../python3.12"), "clean absolute path"));
  EXPECT_TRUE(says(refusal("tar+gzip", "tar+brotli"), "no media type"));
  EXPECT_TRUE(says(refusal("glibc = \"2.41\"", "glibc = \"new\""), "is not a version"));
  EXPECT_TRUE(says(refusal("config-size = 1234\n", ""), "config-size"));
}

TEST(BaseImage, DifferencesNameTheImage) {
  const Lock before = lock_on_base();
  Lock after = lock_on_base();
  after.base->manifest = Digest::of("other");
  after.base->glibc = "2.42";
  const std::vector<std::string> lines = lock_differences(before, after);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_TRUE(says(lines[0], "base image: ")) << lines[0];
  EXPECT_EQ(lines[1], "glibc: 2.41 → 2.42");
}

}  // namespace
}  // namespace mlenv
