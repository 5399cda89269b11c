// pixi.lock, and what a Pixi manifest says beside packages.
#include <algorithm>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class PixiLockTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) {
    write_file(folder_.path() / name, text, false);
  }
  Draft of(const std::string& name) {
    Draft draft = convert(folder_.path() / name, folder_.path());
    Draft whole = draft;
    if (whole.name.empty()) whole.name = "x";
    choose_for_host(whole, {"debian:bookworm", ""});
    const std::string written = render_draft(whole, "recipe.yaml");
    EXPECT_NO_THROW(parse_recipe(written, "recipe.yaml")) << written;
    return draft;
  }
  static bool tells(const std::vector<LeftOut>& all, std::string_view word) {
    return std::any_of(all.begin(), all.end(), [&](const LeftOut& one) {
      return sentence(one).find(word) != std::string::npos;
    });
  }

  TemporaryFolder folder_{temporary_root()};
};

constexpr std::string_view kChannel = "https://conda.example/forge";

std::string conda_line(std::string_view file) {
  return fmt::format("      - conda: {}/{}\n", kChannel, file);
}

std::string conda_entry(std::string_view file, std::string_view purls) {
  return fmt::format("- conda: {}/{}\n  sha256: aa\n  purls: {}\n", kChannel, file, purls);
}

TEST_F(PixiLockTest, TakesTheDefaultEnvironmentOfLinux) {
  put("pixi.lock",
      "version: 6\nenvironments:\n  default:\n    channels:\n    - url: " + std::string(kChannel) +
          "\n    packages:\n      osx-arm64:\n" +
          conda_line("osx-arm64/numpy-9.9-py312h1_0.conda") + "      linux-64:\n" +
          conda_line("linux-64/python-3.12.8-h9_0_cpython.conda") +
          conda_line("linux-64/numpy-2.1.3-py312h2_0.conda") +
          conda_line("linux-64/libxyz-1.2-h1_0.conda") +
          conda_line("noarch/seaweed-py-0.4-pyhd1_0.conda") +
          "      - pypi: https://files.example/einops-0.8.0-py3-none-any.whl\n"
          "      - pypi: git+https://git.example/team/probe.git?subdirectory=py&rev=v1#0123abc\n"
          "      - pypi: direct+https://host.example/mine-1.0-py3-none-any.whl\n"
          "      - pypi: ./libs/tool\n      - pypi: https://files.example/nameless-1.whl\n"
          "  test:\n    packages:\n      linux-64: []\npackages:\n" +
          conda_entry("linux-64/numpy-2.1.3-py312h2_0.conda", "\n  - pkg:pypi/numpy?source=hash") +
          conda_entry("linux-64/libxyz-1.2-h1_0.conda", "[]") +
          conda_entry("noarch/seaweed-py-0.4-pyhd1_0.conda", "\n  - pkg:pypi/seaweed@0.4") +
          "- pypi: https://files.example/einops-0.8.0-py3-none-any.whl\n  name: einops\n"
          "  version: 0.8.0\n"
          "- pypi: git+https://git.example/team/probe.git?subdirectory=py&rev=v1#0123abc\n"
          "  name: probe\n  version: 0.1.0\n"
          "- pypi: direct+https://host.example/mine-1.0-py3-none-any.whl\n  name: mine\n"
          "- pypi: ./libs/tool\n  name: tool\n  version: '0'\n");
  put("pixi.toml",
      "[workspace]\nname = \"Waves\"\n[dependencies]\nscipy = \"*\"\n[activation.env]\nA = "
      "\"1\"\n");
  const Draft draft = of("pixi.lock");
  EXPECT_EQ(draft.name, "waves");
  EXPECT_EQ(draft.python, "3.12");
  EXPECT_EQ(
      draft.packages,
      (Strings{"numpy==2.1.3", "seaweed==0.4", "einops==0.8.0",
               "probe @ git+https://git.example/team/probe.git@0123abc#subdirectory=py",
               "mine @ https://host.example/mine-1.0-py3-none-any.whl", "tool @ ./libs/tool"}));
  EXPECT_EQ(draft.env.size(), 1U);
  EXPECT_TRUE(tells(draft.left_out, "libxyz"));
  EXPECT_TRUE(tells(draft.left_out, "nameless"));
  EXPECT_TRUE(tells(draft.left_out, "`test`"));
}

TEST_F(PixiLockTest, ReadsTheOlderFormAndSaysWhichEnvironment) {
  put("pixi.lock",
      "version: 5\nenvironments:\n  gpu:\n    packages:\n      linux-64:\n"
      "      - pypi: https://files.example/tqdm-4.66-py3-none-any.whl\npackages:\n- kind: pypi\n"
      "  name: tqdm\n  version: '4.66'\n  url: https://files.example/tqdm-4.66-py3-none-any.whl\n");
  const Draft draft = of("pixi.lock");
  EXPECT_EQ(draft.packages, Strings{"tqdm==4.66"});
  EXPECT_TRUE(tells(draft.notes, "gpu"));
}

TEST_F(PixiLockTest, CudaThatCameAlongCountsWithAFramework) {
  const std::string head =
      "version: 6\nenvironments:\n  default:\n    packages:\n      linux-64:\n" +
      conda_line("noarch/cuda-version-12.6-h7_3.conda");
  put("pixi.lock", head + conda_line("linux-64/catboost-1.2.7-py311h3_0.conda") + "packages: []\n");
  EXPECT_EQ(of("pixi.lock").cuda, "");
  put("pixi.lock",
      head + conda_line("linux-64/pytorch-2.5.1-cuda126_py311_1.conda") + "packages: []\n");
  EXPECT_EQ(of("pixi.lock").cuda, "12");
}

TEST_F(PixiLockTest, TellsThatNoneIsForLinux) {
  put("pixi.lock",
      "version: 6\nenvironments:\n  default:\n    packages:\n      win-64: []\npackages: []\n");
  EXPECT_TRUE(tells(of("pixi.lock").left_out, "linux-64"));
  put("pixi.lock", "version: 6\npackages: []\n");
  EXPECT_TRUE(tells(of("pixi.lock").left_out, "no environment"));
}

TEST_F(PixiLockTest, OptionsOfAManifestBecomeKeys) {
  put("pixi.toml",
      "[workspace]\nname = \"x\"\nexclude-newer = \"2025-03-01\"\n[tasks]\n[dependencies]\n"
      "python = \"3.11.*\"\n[pypi-dependencies]\nrich = \"*\"\n[pypi-options]\n"
      "no-build = true\nno-binary = [\"Fast_Thing\"]\nprerelease-mode = \"allow\"\n"
      "no-build-isolation = [\"slow\"]\nindex-strategy = \"first-index\"\n"
      "find-links = [{ url = \"https://host.example/wheels\" }]\n"
      "[pypi-options.dependency-overrides]\nnumpy = \"<2\"\nattrs = \"*\"\nodd = { git = \"x\" "
      "}\n");
  const Draft draft = of("pixi.toml");
  EXPECT_EQ(draft.choice.exclude_newer, "2025-03-01");
  EXPECT_EQ(draft.choice.only_binary, Strings{":all:"});
  EXPECT_EQ(draft.choice.no_binary, Strings{"fast-thing"});
  EXPECT_EQ(draft.choice.prerelease, "allow");
  EXPECT_EQ(draft.choice.overrides, (Strings{"attrs", "numpy<2"}));
  EXPECT_FALSE(tells(draft.left_out, "tasks"));
  for (const char* word : {"no-build-isolation", "index-strategy", "find-links", "odd"}) {
    EXPECT_TRUE(tells(draft.left_out, word)) << word;
  }
}

}  // namespace
}  // namespace mlenv
