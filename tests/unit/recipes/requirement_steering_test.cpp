// How packages are chosen and built, as files that `requirements` names say it.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/recipe.hpp"
#include "recipes/recipe_edit.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/requirement_uv.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

using NameSet = std::set<std::string>;

class RequirementSteeringTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const fs::path where = folder_.path() / path;
    fs::create_directories(where.parent_path());
    write_file(where, text, /*durable=*/false);
  }
  Recipe recipe(const std::string& rest) {
    put("recipe.yaml", "name: a\nbase: debian:bookworm\n" + rest + "\n");
    return read_recipe(folder_.path() / "recipe.yaml");
  }
  Steering of_lines(const std::string& text) {
    put("r.txt", text);
    return recipe("requirements: r.txt").steering;
  }
  Recipe of_project(const std::string& text, const std::string& more = {}) {
    put("pyproject.toml",
        "[project]\nname = \"own\"\ndependencies = [\"torch\", \"member\"]\n" + text);
    return recipe("requirements: pyproject.toml" + more);
  }
  std::string refused(const std::string& rest) {
    try {
      recipe(rest);
      return "nothing";
    } catch (const Error& error) {
      return error.frames().front();
    }
  }
  std::string refused_project(const std::string& text) {
    try {
      of_project(text);
      return "nothing";
    } catch (const Error& error) {
      return error.frames().front();
    }
  }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(RequirementSteeringTest, OptionsOfLines) {
  put("b.txt", "setuptools<81\nwheel<1\n");
  const Steering steering = of_lines(
      "--only-binary :all:\n--only-binary=:none:\n--no-binary Mpi4py,horovod\n"
      "--only-binary horovod\n--prefer-binary\n--pre\n--build-constraint b.txt\n"
      "-C a=b\nnumpy==2.0 --config-settings setup-args=-Dx=y --config-settings=setup-args=-Dz=1\n");
  EXPECT_EQ(steering.no_binary, (NameSet{"mpi4py"}));
  EXPECT_EQ(steering.only_binary, (NameSet{"horovod"}));
  EXPECT_EQ(steering.prefer_binary, (NameSet{":all:"}));
  EXPECT_EQ(steering.prerelease, "allow");
  EXPECT_EQ(steering.build.constraints, (Strings{"setuptools<81", "wheel<1"}));
  EXPECT_EQ(steering.build.config_settings.all.at("a"), (Strings{"b"}));
  EXPECT_EQ(steering.build.config_settings.by_name.at("numpy").at("setup-args"),
            (Strings{"-Dx=y", "-Dz=1"}));
}

TEST_F(RequirementSteeringTest, OptionsThatCannotBeTaken) {
  const auto says = [&](const std::string& text, std::string_view what) {
    put("r.txt", text);
    const std::string said = refused("requirements: r.txt");
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  says("a --global-option=x\n",
       "r.txt:1:3: `--global-option` is not supported here: it is of "
       "setuptools alone");
  says("--no-binary a/b\n", "r.txt:1:13: `a/b` is not a package's name, nor `:all:`");
  says("a --config-settings x\n", "a setting is written `KEY=VALUE`");
  says("--build-constraint none.txt\n", "does not exist");
}

TEST_F(RequirementSteeringTest, ConstraintsOfTheRecipe) {
  put("c.txt", "attrs<24\n");
  put("b.txt", "wheel<1\n");
  const Recipe read = recipe(
      "packages: [attrs]\nconstraints: [numpy<2, -c c.txt]\nbuild: {constraints: [b.txt, a<1]}");
  EXPECT_EQ(read.listed.constraint_texts(), (Strings{"attrs<24", "numpy<2"}));
  EXPECT_EQ(read.steering.build.constraints, (Strings{"a<1", "wheel<1"}));
  EXPECT_NE(read.listed.constraints[0].shown("x").find("recipe.yaml:4:15: x"), std::string::npos);
  EXPECT_NE(refused("constraints: c2.txt").find("`c2.txt` does not exist"), std::string::npos);
}

TEST_F(RequirementSteeringTest, SettingsOfUv) {
  const Recipe read = of_project(
      "[tool.uv]\n"
      "constraint-dependencies = [\"a<1\"]\noverride-dependencies = [\"numpy<2\"]\n"
      "exclude-dependencies = [\"Nvidia_NCCL\"]\n"
      "build-constraint-dependencies = [\"setuptools<81\"]\n"
      "extra-build-dependencies = {flash-attn = [\"ninja\", {requirement = \"torch\", "
      "match-runtime = true}]}\n"
      "extra-build-variables = {flash-attn = {SKIP = \"TRUE\"}}\n"
      "config-settings = {editable = \"x\"}\nconfig-settings-package = {numpy = {s = [\"-Da\"]}}\n"
      "no-binary-package = [\"mpi4py\"]\nno-build-package = [\"scipy\"]\nprerelease = \"allow\"\n"
      "environments = [\"sys_platform == 'linux'\"]\nconflicts = [[{extra = \"a\"}]]\n"
      "dependency-metadata = [{name = \"f\", version = \"1\", requires-dist = [\"torch\"], "
      "provides-extras = [\"b\"]}]\n");
  const Steering& steering = read.steering;
  EXPECT_EQ(read.listed.constraint_texts(), (Strings{"a<1"}));
  EXPECT_EQ(steering.overrides, (Strings{"numpy<2"}));
  EXPECT_EQ(steering.exclude, (NameSet{"nvidia-nccl"}));
  EXPECT_EQ(steering.build.constraints, (Strings{"setuptools<81"}));
  EXPECT_EQ(steering.build.requirements.at("flash-attn"), (Strings{"ninja", "torch"}));
  EXPECT_EQ(steering.build.env.by_name.at("flash-attn").at("SKIP"), "TRUE");
  EXPECT_EQ(steering.build.config_settings.all.at("editable"), (Strings{"x"}));
  EXPECT_EQ(steering.build.config_settings.by_name.at("numpy").at("s"), (Strings{"-Da"}));
  EXPECT_EQ(steering.no_binary, (NameSet{"mpi4py"}));
  EXPECT_EQ(steering.only_binary, (NameSet{"scipy"}));
  EXPECT_EQ(steering.prerelease, "allow");
  ASSERT_EQ(steering.metadata.size(), 1U);
  EXPECT_EQ(steering.metadata[0], (StatedMetadata{"f", "1", {"torch"}, "", {"b"}}));
  ASSERT_EQ(read.listed.notes.size(), 1U);
  EXPECT_NE(read.listed.notes[0].text.find("`conflicts` do not count"), std::string::npos);
}

TEST_F(RequirementSteeringTest, IndexesOfUv) {
  const std::string indexes =
      "[[tool.uv.index]]\nname = \"cu\"\nurl = \"https://index.example/cu\"\nexplicit = true\n"
      "[[tool.uv.index]]\nname = \"cpu\"\nurl = \"https://index.example/cpu\"\nexplicit = true\n"
      "[[tool.uv.index]]\nname = \"mine\"\nurl = \"wheels\"\nformat = \"flat\"\nexplicit = true\n"
      "[[tool.uv.index]]\nurl = \"https://mirror.example/simple\"\ndefault = true\n";
  Recipe read = of_project(
      "[tool.uv.sources]\nmember = {index = \"mine\"}\n"
      "torch = [{index = \"cu\", marker = \"sys_platform == 'linux'\"},"
      " {index = \"cpu\", marker = \"sys_platform == 'darwin'\"}]\n" +
      indexes);
  ASSERT_EQ(read.steering.indexes.size(), 2U);
  EXPECT_EQ(read.steering.indexes[0], (PackageIndex{"./wheels", true, {"member"}}));
  EXPECT_EQ(read.steering.indexes[1], (PackageIndex{"https://index.example/cu", false, {"torch"}}));
  EXPECT_EQ(read.listed.indexes, (Strings{"--index-url https://mirror.example/simple"}));

  const std::string by_extra =
      "[project.optional-dependencies]\ncu = []\ncpu = []\n[tool.uv.sources]\n"
      "torch = [{index = \"cu\", extra = \"cu\"}, {index = \"cpu\", extra = \"cpu\"}]\n" +
      indexes;
  EXPECT_TRUE(of_project(by_extra).steering.indexes.empty());
  put("recipe.yaml", "");
  put("pyproject.toml", "[project]\nname = \"own\"\ndependencies = [\"torch\"]\n" + by_extra);
  read = recipe("requirements: \"pyproject.toml[cpu]\"");
  ASSERT_EQ(read.steering.indexes.size(), 1U);
  EXPECT_EQ(read.steering.indexes[0].url, "https://index.example/cpu");
  // The recipe's own goes first.
  read = recipe("requirements: \"pyproject.toml[cpu]\"\nindex: {torch: https://own.example/}");
  ASSERT_EQ(read.steering.indexes.size(), 1U);
  EXPECT_EQ(read.steering.indexes[0].url, "https://own.example/");
}

TEST_F(RequirementSteeringTest, MembersOfAWorkspace) {
  put("packages/one/pyproject.toml", "[project]\nname = \"Member\"\n");
  put("packages/two/README", "");
  const Recipe read = of_project(
      "[tool.uv.sources]\nmember = {workspace = true}\n"
      "[tool.uv.workspace]\nmembers = [\"packages/*\"]\n");
  EXPECT_EQ(read.listed.requirement_texts(), (Strings{"member @ ./packages/one", "torch"}));
}

TEST_F(RequirementSteeringTest, SettingsOfUvThatCannotBeTaken) {
  const auto says = [&](const std::string& text, std::string_view what) {
    const std::string said = refused_project(text);
    EXPECT_NE(said.find(what), std::string::npos) << said;
  };
  says("[tool.uv]\noverride-dependencies = [\"a @ ./x\"]\n", "pyproject.toml:5:26: here a package");
  says("[tool.uv]\nprerelease = \"alow\"\n", "did you mean `allow`?");
  says("[tool.uv.sources]\ntorch = {index = \"none\"}\n", "there is no `[[tool.uv.index]]`");
  says("[tool.uv.sources]\nmember = {workspace = true}\n", "no member of this file's workspace");
  says(
      "[tool.uv.sources]\nmember = {git = \"https://h.example/a\", marker = \"python_version < "
      "'3.12'\"}\n",
      "depends on the image's Python or machine");
  says("[[tool.uv.index]]\nurl = \"https://me:secret@h.example/\"\n", "must not hold a login");
  says("[tool.uv]\nextra-build-variables = {a = {\"b c\" = \"d\"}}\n", "is no variable");
}

TEST_F(RequirementSteeringTest, MarkersBeforeAnImageIsKnown) {
  const Recipe any = recipe("");
  const Recipe one = recipe("python: \"3.11\"");
  EXPECT_EQ(marker_reach("", any), MarkerReach::all);
  EXPECT_EQ(marker_reach("sys_platform == 'linux'", any), MarkerReach::all);
  EXPECT_EQ(marker_reach("platform_machine == 'aarch64'", any), MarkerReach::none);
  EXPECT_EQ(marker_reach("python_version < '3.12'", any), MarkerReach::some);
  EXPECT_EQ(marker_reach("python_version < '3.12'", one), MarkerReach::all);
}

TEST_F(RequirementSteeringTest, ManifestOfUvLock) {
  put("uv.lock",
      "version = 1\nrequires-python = \">=3.10\"\n"
      "[manifest]\noverrides = [{ name = \"numpy\", specifier = \"<2\" }]\n"
      "constraints = [{ name = \"attrs\", specifier = \">=23, <24\", marker = \"python_version < "
      "'3.13'\" }]\nbuild-constraints = [{ name = \"setuptools\", specifier = \"<81\" }]\n"
      "[[manifest.dependency-metadata]]\nname = \"f\"\nversion = \"1\"\nrequires-dist = "
      "[\"torch\"]\n"
      "[[package]]\nname = \"own\"\nsource = { virtual = \".\" }\ndependencies = [{ name = "
      "\"torch\" }]\n"
      "[[package]]\nname = \"torch\"\nversion = \"2.5.1+cu121\"\nsource = { registry = "
      "\"https://index.example/cu121\" }\n");
  const Recipe read = recipe("requirements: uv.lock");
  EXPECT_EQ(read.steering.overrides, (Strings{"numpy<2"}));
  EXPECT_EQ(read.steering.build.constraints, (Strings{"setuptools<81"}));
  EXPECT_EQ(read.steering.metadata.size(), 1U);
  ASSERT_EQ(read.steering.indexes.size(), 1U);
  EXPECT_EQ(read.steering.indexes[0],
            (PackageIndex{"https://index.example/cu121", false, {"torch"}}));
  EXPECT_EQ(
      read.listed.constraint_texts(),
      (Strings{"Python >=3.10", "attrs>=23,<24 ; python_version < '3.13'", "torch==2.5.1+cu121"}));
}

TEST_F(RequirementSteeringTest, StaysWhereARecipeIsEdited) {
  const Recipe before = of_project("[tool.uv]\noverride-dependencies = [\"numpy<2\"]\n");
  const RecipeEdit edit = add_packages(before, PackageList::packages, {"attrs"});
  EXPECT_EQ(edit.recipe.steering, before.steering);
}

TEST_F(RequirementSteeringTest, AFileLeavesOutNothingThatTheRecipeItselfAsksFor) {
  const std::string text = "[tool.uv]\nexclude-dependencies = [\"six\"]\n";
  EXPECT_EQ(of_project(text).steering.exclude, NameSet{"six"});
  try {
    of_project(text, "\npackages: [numpy, Six>=1]");
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "recipe-invalid");
    EXPECT_NE(std::string(error.what()).find("recipe.yaml:4:"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("`six` is asked for here"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace mlenv
