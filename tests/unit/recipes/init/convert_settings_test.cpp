// What projects' files say beside their packages: settings of uv's, indexes, tasks, locks of
// conda's.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class ConvertSettingsTest : public testing::Test {
 protected:
  Draft of(const std::string& name, std::string_view text) {
    write_file(folder_.path() / name, text, false);
    Draft draft = convert(folder_.path() / name, folder_.path());
    Draft whole = draft;
    if (whole.name.empty()) whole.name = "x";
    choose_for_host(whole, {"debian:bookworm", ""});
    written_ = render_draft(whole, "recipe.yaml");
    EXPECT_NO_THROW(parse_recipe(written_, "recipe.yaml")) << written_;
    return draft;
  }
  static bool tells(const Draft& draft, std::string_view word) {
    return std::any_of(draft.left_out.begin(), draft.left_out.end(), [&](const LeftOut& one) {
      return sentence(one).find(word) != std::string::npos;
    });
  }

  TemporaryFolder folder_{temporary_root()};
  std::string written_;
};

TEST_F(ConvertSettingsTest, UvsSettingsBecomeKeys) {
  const Draft draft =
      of("pyproject.toml",
         "[project]\nname = \"x\"\ndependencies = [\"torch\", \"six\"]\n[tool.uv]\n"
         "override-dependencies = [\"numpy<2\", \"triton; sys_platform == 'never'\"]\n"
         "constraint-dependencies = [\"pandas<3\"]\n"
         "exclude-dependencies = [\"opencv-python\", \"six\", \"torch\"]\n"
         "build-constraint-dependencies = [\"setuptools<81\"]\n"
         "no-binary-package = [\"mpi4py\"]\nno-build = true\nprerelease = \"allow\"\n"
         "no-build-isolation-package = [\"flash-attn\"]\nlink-mode = \"copy\"\n"
         "[tool.uv.extra-build-dependencies]\n"
         "flash-attn = [{ requirement = \"torch\", match-runtime = true }, \"ninja\"]\n"
         "[tool.uv.extra-build-variables]\nflash-attn = { SKIP_CUDA = \"TRUE\" }\n"
         "[[tool.uv.index]]\nurl = \"https://index.example/simple\"\ndefault = true\n");
  EXPECT_EQ(draft.choice.overrides, Strings{"numpy<2"});
  EXPECT_EQ(draft.choice.constraints, Strings{"pandas<3"});
  EXPECT_EQ(draft.choice.exclude, Strings{"opencv-python"});
  EXPECT_EQ(draft.choice.build_constraints, Strings{"setuptools<81"});
  EXPECT_EQ(draft.choice.no_binary, Strings{"mpi4py"});
  EXPECT_EQ(draft.choice.only_binary, Strings{":all:"});
  EXPECT_EQ(draft.choice.prerelease, "allow");
  EXPECT_EQ(draft.indexes, Strings{"https://index.example/simple"});
  EXPECT_TRUE(tells(draft, "never"));
  EXPECT_TRUE(tells(draft, "builds are always isolated"));
  EXPECT_TRUE(tells(draft, "the project asks for it itself"));
  const Recipe recipe = parse_recipe(written_, "recipe.yaml");
  EXPECT_EQ(recipe.steering.build.requirements.at("flash-attn"), (Strings{"ninja", "torch"}));
  EXPECT_EQ(recipe.steering.build.env.by_name.at("flash-attn").at("SKIP_CUDA"), "TRUE");
  EXPECT_EQ(recipe.steering.overrides, Strings{"numpy<2"});
}

TEST_F(ConvertSettingsTest, OneFrameworkOnTwoLines) {
  Draft draft =
      of("requirements.txt", "jax==0.4.30\njax[cuda12]==0.4.30; sys_platform != 'darwin'\n");
  EXPECT_EQ(draft.framework, "jax==0.4.30");
  EXPECT_EQ(draft.cuda, "12");
  EXPECT_TRUE(draft.packages.empty());
  draft = of("requirements.txt", "torch>=2\ntorch\ntorch<3\n");
  EXPECT_EQ(draft.framework, "pytorch>=2");
  EXPECT_EQ(draft.packages, Strings{"torch<3"});
}

TEST_F(ConvertSettingsTest, TheFirstSourceOfAPipfileIsTheIndex) {
  const std::string packages = "[packages]\nsix = \"*\"\n";
  Draft draft =
      of("Pipfile",
         "[[source]]\nurl = \"https://index.example/simple\"\nname = \"mirror\"\n" + packages);
  EXPECT_EQ(draft.indexes, Strings{"https://index.example/simple"});
  draft = of("Pipfile",
             "[[source]]\nurl = \"https://index.example/simple\"\nname = \"pypi\"\n" + packages);
  EXPECT_TRUE(draft.indexes.empty());
  EXPECT_TRUE(tells(draft, "index.example"));
}

TEST_F(ConvertSettingsTest, TasksThatInstallAreTold) {
  const Draft draft = of("pixi.toml",
                         "[workspace]\nname = \"x\"\n[tasks]\ntrain = \"python train.py\"\n"
                         "setup = { cmd = \"pip install -e .\" }\n");
  EXPECT_TRUE(tells(draft, "tasks.setup"));
  EXPECT_FALSE(tells(draft, "tasks.train"));
}

TEST_F(ConvertSettingsTest, ALockOfCondaLocks) {
  const auto package = [](const std::string& name, const std::string& version,
                          const std::string& rest) {
    return "- {name: " + name + ", version: '" + version + "', " + rest + "}\n";
  };
  const std::string linux_64 = "platform: linux-64, manager: conda";
  const std::string text =
      "version: 1\nmetadata: {}\npackage:\n" + package("python", "3.11.6", linux_64) +
      package("numpy", "1.26.0",
              linux_64 + ", url: https://host.example/numpy-1.26.0-py311h64a7726_0.conda") +
      package("numpy", "1.25.2", "platform: osx-arm64, manager: conda") +
      package("zlib", "1.3", linux_64) + package("pytest", "8.0", linux_64 + ", category: dev") +
      package("black", "24", linux_64 + ", categories: [dev, lint]") +
      package("pandas", "2.1", linux_64 + ", categories: [dev, main]") +
      package("six", "1.16.0", "platform: linux-64, manager: pip") +
      package("tool", "0",
              "platform: linux-64, manager: pip, url: 'git+https://git.example/t.git@1'");
  const Draft draft = of("conda-lock.yml", text);
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, (Strings{"numpy==1.26.0", "pandas==2.1", "six==1.16.0",
                                     "tool @ git+https://git.example/t.git@1"}));
  EXPECT_TRUE(tells(draft, "pytest, black"));
  EXPECT_TRUE(tells(draft, "zlib"));
  EXPECT_TRUE(tells(of("conda-lock.yml", "metadata: {}\npackage:\n" +
                                             package("six", "1", "platform: osx-64, manager: pip")),
                    "none is for `linux-64`"));
  const Draft explicit_lock =
      of("conda-linux-64.lock",
         "# platform: linux-64\n@EXPLICIT\n"
         "https://host.example/linux-64/numpy-1.26.0-py311h64a7726_0.conda\n");
  EXPECT_EQ(explicit_lock.packages, Strings{"numpy==1.26.0"});
}

TEST_F(ConvertSettingsTest, CondaFilesWithAnchors) {
  const Draft draft = of("environment.yml",
                         "x-python: &python \"python=3.11\"\nchannels: &channels [conda-forge]\n"
                         "dependencies:\n- *python\n- numpy\n- pip:\n  - &six six==1.16.0\n"
                         "variables: &more {A: \"1\"}\n");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, (Strings{"numpy", "six==1.16.0"}));
}

}  // namespace
}  // namespace mlenv
