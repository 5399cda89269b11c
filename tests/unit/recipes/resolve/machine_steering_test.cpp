#include "recipes/resolve/machine_steering.hpp"

#include <gtest/gtest.h>

#include "recipes/init/machine_keys.hpp"
#include "recipes/recipe.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class MachineSteeringTest : public testing::Test {
 protected:
  std::string put(const std::string& path, const std::string& text) {
    const fs::path where = root_.path() / path;
    fs::create_directories(where.parent_path());
    write_file(where, text, /*durable=*/false);
    return where.string();
  }
  Strings keys(const Strings& environment) {
    Strings found;
    for (const MachineWord& one : machine_steering(environment, root_.path())) {
      found.push_back(one.where + " " + one.key);
    }
    return found;
  }

  TemporaryFolder root_{temporary_root()};
};

TEST_F(MachineSteeringTest, VariablesAreNamedWithTheirKey) {
  EXPECT_TRUE(
      keys({"UV_INDEX_URL=https://h.example/", "PIP_NO_BINARY=", "UV_NO_BUILD=false"}).empty());
  EXPECT_EQ(keys({"UV_OVERRIDE=o.txt", "PIP_PREFER_BINARY=1", "PIP_BUILD_CONSTRAINT=b.txt"}),
            (Strings{"`UV_OVERRIDE` overrides", "`PIP_BUILD_CONSTRAINT` build: {constraints: …}",
                     "`PIP_PREFER_BINARY` prefer-binary"}));
}

TEST_F(MachineSteeringTest, FilesOfPipAndUv) {
  const std::string pip = put("etc/pip.conf",
                              "[global]\nindex-url = https://h.example\nno_binary = numpy\n"
                              "[list]\npre = true\n[install]\n# constraint = a\npre = yes\n");
  const std::string uv = put("home/.config/uv/uv.toml",
                             "prerelease = \"allow\"\nindex-url = \"https://h.example/\"\n"
                             "no-build = false\n[pip]\noverride-dependencies = [\"a<1\"]\n");
  EXPECT_EQ(
      keys({"HOME=" + root_.path().string() + "/home"}),
      (Strings{"`no-binary` of " + pip + " no-binary", "`pre` of " + pip + " prerelease: allow",
               "`prerelease` of " + uv + " prerelease",
               "`override-dependencies` of " + uv + " overrides"}));
  EXPECT_TRUE(keys({"PIP_CONFIG_FILE=/dev/null", "UV_NO_CONFIG=1",
                    "HOME=" + root_.path().string() + "/home"})
                  .empty());
}

TEST_F(MachineSteeringTest, UvIsGivenSettingsThatDoNotSteer) {
  EXPECT_EQ(without_steering("index-url = \"https://h.example/\"\n"), std::nullopt);
  EXPECT_EQ(without_steering("index-url = ["), std::nullopt);
  EXPECT_EQ(without_steering("offline = true\nprerelease = \"allow\"\nconcurrent-builds = 3\n"
                             "[[index]]\nurl = \"https://h.example/\"\n[pip]\nno-build = true\n"),
            "concurrent-builds = 3\nindex = [{ url = \"https://h.example/\" }]\noffline = true\n"
            "pip = {}\n");

  EXPECT_EQ(without_steering("universal = true\nno-emit-package = [\"a\"]\nof-tomorrow = 1\n"
                             "no-index = true\n[pip]\npython-platform = \"windows\"\n"),
            "no-index = true\npip = {}\n");

  put("home/uv/uv.toml", "prerelease = \"allow\"\noffline = true\n");
  put("etc/uv/uv.toml", "offline = true\n");
  const TemporaryFolder folder{temporary_root()};
  Strings environment = {"XDG_CONFIG_HOME=" + root_.path().string() + "/home"};
  narrow_uv_config(environment, folder.path(), root_.path());
  ASSERT_EQ(environment.size(), 1U);
  const fs::path home(variable_in(environment, "XDG_CONFIG_HOME"));
  EXPECT_EQ(home.parent_path(), folder.path());
  EXPECT_EQ(read_file(home / "uv/uv.toml"), "offline = true\n");

  const std::string own = put("own.toml", "offline = true\n");
  environment = {"UV_CONFIG_FILE=" + own};
  narrow_uv_config(environment, folder.path(), root_.path());
  EXPECT_TRUE(variable_in(environment, "UV_CONFIG_FILE").empty());
  EXPECT_EQ(read_file(fs::path(variable_in(environment, "XDG_CONFIG_HOME")) / "uv/uv.toml"),
            "offline = true\n");
  EXPECT_EQ(read_file(fs::path(variable_in(environment, "XDG_CONFIG_DIRS")) / "uv/uv.toml"), "");
}

TEST_F(MachineSteeringTest, OfUvsVariablesTheMachinesAloneReachIt) {
  for (const char* name : {"PATH", "HTTPS_PROXY", "UV_INDEX", "UV_INDEX_SITE_PASSWORD",
                           "UV_FIND_LINKS", "UV_CONCURRENT_BUILDS", "UV_CACHE_DIR"}) {
    EXPECT_TRUE(may_reach_uv(name)) << name;
  }
  for (const char* name : {"UV_OVERRIDE", "UV_FORK_STRATEGY", "UV_PYTHON", "UV_OF_TOMORROW",
                           "UV_NO_SOURCES", "UV_PREVIEW"}) {
    EXPECT_FALSE(may_reach_uv(name)) << name;
  }
  EXPECT_EQ(keys({"UV_FORK_STRATEGY=fewest"}), (Strings{"`UV_FORK_STRATEGY` "}));
  EXPECT_EQ(with_machine_keys("name: a\n", machine_steering({"UV_NO_SOURCES=1"}, root_.path())),
            "name: a\n");
}

TEST_F(MachineSteeringTest, ANewRecipeSaysIt) {
  const std::string limits = put("limits.txt", "# of the site\nnumpy<2  # old\n\nattrs>=1\n");
  const std::string before = "name: a\nbase: debian:bookworm\nno-binary: [x]\n";
  const std::string after = with_machine_keys(
      before, machine_steering(
                  {"PIP_CONSTRAINT=" + limits, "PIP_BUILD_CONSTRAINT=" + limits, "PIP_NO_BINARY=y",
                   "PIP_PRE=1", "PIP_ONLY_BINARY=:all:", "UV_EXCLUDE_NEWER=2024-01-01"},
                  root_.path()));
  const Recipe recipe = parse_recipe(after, "recipe.yaml");
  ASSERT_EQ(recipe.constraints.size(), 2U);
  EXPECT_EQ(recipe.constraints[0].text, "numpy<2");
  EXPECT_EQ(recipe.steering.build.constraints, (Strings{"attrs>=1", "numpy<2"}));
  EXPECT_EQ(recipe.steering.prerelease, "allow");
  EXPECT_EQ(recipe.steering.only_binary, (std::set<std::string>{":all:"}));
  EXPECT_EQ(recipe.steering.no_binary, (std::set<std::string>{"x"}));
  EXPECT_NE(after.find("# `PIP_NO_BINARY` is y: write `no-binary`\n"), std::string::npos);
  EXPECT_EQ(recipe.steering.exclude_newer, "2024-01-01");
  EXPECT_EQ(with_machine_keys(before, {}), before);
}

}  // namespace
}  // namespace mlenv
