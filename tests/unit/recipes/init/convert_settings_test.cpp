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

TEST_F(ConvertSettingsTest, UvsMetadataSettingsAndDateBecomeKeys) {
  of("pyproject.toml",
     "[project]\nname = \"x\"\ndependencies = [\"chum\", \"torchy\"]\n[tool.uv]\n"
     "exclude-newer = \"2024-06-30\"\npackage = false\n"
     "config-settings = { jobs = \"2\", flag = [\"a\", \"b\"] }\n"
     "config-settings-package = { Chum = { editable = true } }\n"
     "dependency-metadata = [{ name = \"Chum\", version = \"0.7\", requires-dist = [\"numpy\"] }]\n"
     "[tool.uv.sources]\ntorchy = [{ index = \"own\", marker = \"sys_platform == 'linux'\" }, "
     "{ index = \"other\", extra = \"gpu\" }]\n"
     "[[tool.uv.index]]\nname = \"own\"\nurl = \"https://index.example/own\"\nexplicit = true\n"
     "[[tool.uv.index]]\nname = \"other\"\nurl = \"https://index.example/2\"\nexplicit = true\n");
  const Steering steering = parse_recipe(written_, "recipe.yaml").steering;
  EXPECT_EQ(steering.exclude_newer, "2024-06-30");
  const StatedMetadata stated{"chum", "0.7", {"numpy"}, "", {}};
  EXPECT_EQ(steering.metadata, std::vector{stated});
  EXPECT_EQ(steering.build.config_settings.all.at("flag"), (Strings{"a", "b"}));
  EXPECT_EQ(steering.build.config_settings.all.at("jobs"), Strings{"2"});
  EXPECT_EQ(steering.build.config_settings.by_name.at("chum").at("editable"), Strings{"true"});
  const PackageIndex own{"https://index.example/own", false, {"torchy"}};
  EXPECT_EQ(steering.indexes, std::vector{own});
  EXPECT_EQ(written_.find("Not carried over"), std::string::npos) << written_;
  EXPECT_TRUE(tells(
      of("pyproject.toml", "[project]\nname = \"x\"\n[tool.uv]\nexclude-newer = \"7 days\"\n"),
      "exclude-newer"));
}

TEST_F(ConvertSettingsTest, ALockThatCannotBeNamedIsTold) {
  write_file(folder_.path() / "pyproject.toml",
             "[project]\nname = \"x\"\ndependencies = [\"six\"]\n", false);
  const Draft draft = of("uv.lock",
                         "version = 1\nrequires-python = \">=3.10\"\nconflicts = [[{ package = "
                         "\"x\", extra = \"a\" }, { package = \"x\", extra = \"b\" }]]\n");
  EXPECT_TRUE(tells(draft, "uv.lock: `uv.lock`: its versions do not count"));
  EXPECT_EQ(draft.packages.front(), "six");
}

TEST_F(ConvertSettingsTest, AProjectThatIsInstalledIsNotToldToBeLeftOut) {
  const std::string_view project =
      "[project]\nname = \"x\"\ndynamic = [\"dependencies\"]\nscripts = {go = \"x:go\"}\n"
      "[build-system]\nrequires = [\"hatchling\"]\n";
  const std::string_view lock =
      "version = 1\nconflicts = [[{ package = \"x\", extra = \"a\" }, { package = \"x\", "
      "extra = \"b\" }]]\n";
  write_file(folder_.path() / "pyproject.toml", project, false);
  Draft draft = of("uv.lock", lock);
  EXPECT_EQ(draft.packages, Strings{"x @ ."});
  EXPECT_EQ(draft.left_out.size(), 1U);  // the lock, that its versions do not count
  draft = of("pyproject.toml", project);
  EXPECT_TRUE(tells(draft, "the project itself is not installed"));
  EXPECT_TRUE(tells(draft, "`go`: programs of the project"));
  EXPECT_TRUE(tells(draft, "only when the project is built"));
  // A layer without the project comes first.
  write_file(folder_.path() / "uv.lock", lock, false);
  draft = of("Dockerfile",
             "FROM python:3.11\nCOPY . .\nRUN uv sync --no-install-project\nRUN uv sync\n");
  EXPECT_FALSE(tells(draft, "not installed"));
}

TEST_F(ConvertSettingsTest, OptionsOfRequirementsBecomeKeys) {
  const Draft draft =
      of("requirements.txt",
         "--pre\n--no-binary=Fast.Thing,other\n--only-binary numpy\n"
         "--index-url https://index.example/simple\n"
         "-f https://host.example/mmcv/dist/index.html\n--find-links https://data.pyg.example/w\n"
         "-f https://host.example/page\nmmcv-full==1.5\ntorch-scatter\nlib @ "
         "git+git://git.example/team/lib.git\n");
  EXPECT_EQ(draft.choice.prerelease, "allow");
  EXPECT_EQ(draft.choice.no_binary, (Strings{"fast-thing", "other"}));
  EXPECT_EQ(draft.choice.only_binary, Strings{"numpy"});
  const std::vector<DraftIndex> pages = {
      {"mmcv-full", "https://host.example/mmcv/dist/index.html", true},
      {"torch-scatter", "https://data.pyg.example/w", true}};
  EXPECT_EQ(draft.index, pages);
  EXPECT_EQ(draft.packages.back(), "lib @ git+https://git.example/team/lib.git");
  EXPECT_TRUE(tells(draft, "https://host.example/page"));
  EXPECT_FALSE(draft.notes.empty());
}

TEST_F(ConvertSettingsTest, PagesAndFoldersOfFilesAreOfTheirPackages) {
  make_folders(folder_.path() / "my wheels");
  write_file(folder_.path() / "my wheels/Own_Kernels-1.2-cp311-cp311-linux_x86_64.whl", "", false);
  make_folders(folder_.path() / "none");
  const std::vector<DraftIndex> all = {{"mmcv-full", "https://host.example/mmcv/index.html", true},
                                       {"own-kernels", "./my wheels", true}};
  Draft draft = of("pixi.toml",
                   "[workspace]\nname = \"x\"\n[pypi-dependencies]\nown-kernels = \"*\"\n"
                   "mmcv-full = \"*\"\n[pypi-options]\nfind-links = [{ path = \"my wheels\" }, { "
                   "url = \"https://host.example/mmcv/index.html\" }, { path = \"none\" }, { path "
                   "= \"../far\" }]\n");
  EXPECT_EQ(draft.index, all);
  EXPECT_TRUE(tells(draft, "`find-links: none`: no file in it"));
  EXPECT_TRUE(
      tells(draft, "`find-links: ../far`: `find-links` names a folder in the recipe's own"));
  EXPECT_EQ(draft.left_out.size(), 2U);
  draft = of("pyproject.toml",
             "[project]\nname = \"x\"\ndependencies = [\"own-kernels\", \"mmcv-full\"]\n[tool.uv]\n"
             "find-links = [\"./my wheels\", \"https://host.example/mmcv/index.html\"]\n");
  EXPECT_EQ(draft.index, all);
  draft = of(
      "requirements.txt",
      "--find-links my wheels\n-f https://host.example/mmcv/index.html\nown_kernels\nmmcv-full\n");
  EXPECT_EQ(draft.index, all);
}

TEST_F(ConvertSettingsTest, APythonThatNoReleaseHasBecomesTheNearest) {
  const auto python_of = [&](const std::string& python, const std::string& rest) {
    return of("environment.yml", "dependencies:\n- python" + python + "\n" + rest).python;
  };
  EXPECT_EQ(python_of("=3.7", ""), "3.9");
  EXPECT_EQ(python_of("=3.6.13", "- pytorch=1.4.0\n"), "3.8");
  EXPECT_EQ(python_of(">=3.6,<3.8", ""), "3.9");
  EXPECT_EQ(python_of(">=3.14.1,<3.15", ""), "3.14") << "uv has builds of it";
  EXPECT_EQ(python_of("=3.14", "- pytorch=2.3.0\n"), "3.12");
  EXPECT_EQ(python_of("=2.7", ""), "");
  const Draft old = of("environment.yml", "dependencies:\n- python=3.6\n- pytorch=1.0.0\n");
  EXPECT_EQ(old.python, "3.9");
  EXPECT_TRUE(tells(old, "3.9 is the nearest"));
  ASSERT_EQ(old.notes.size(), 1U);
}

TEST_F(ConvertSettingsTest, APythonOfARangeFitsTheFramework) {
  const auto python_of = [&](const std::string& range, const std::string& needs) {
    return of("pyproject.toml", "[project]\nname = \"x\"\nrequires-python = \"" + range +
                                    "\"\ndependencies = [" + needs + "]\n")
        .python;
  };
  EXPECT_EQ(python_of(">=3.7", "\"torch==1.12.1\""), "3.9");
  EXPECT_EQ(python_of(">=3.12", "\"torch>=2.4\", \"torchvision>=0.19,<0.20\""), "3.12");
  EXPECT_EQ(python_of(">=3.12", "\"torch>=2.4\", \"torchvision>=0.19\""), "3.13");
  EXPECT_EQ(python_of(">=3.11", "\"torch==1.12.1\""), "3.11");
  EXPECT_EQ(of("requirements.txt", "torchvision==0.12.0\n").python, "3.10");
}

TEST_F(ConvertSettingsTest, AProjectThatIsInstalledSaysItsPython) {
  write_file(folder_.path() / "pyproject.toml",
             "[project]\nname = \"lattice\"\nrequires-python = \">=3.13\"\n", false);
  EXPECT_EQ(of("requirements.txt", "-e .\nsix\n").python, "3.13");
  const Draft named =
      of("requirements.txt", "-e .[fast]\nsix==1 --hash=sha256:" + std::string(64, 'a') + "\n");
  EXPECT_EQ(named.requirements.size(), 1U);
  EXPECT_EQ(named.python, "3.13");
}

TEST_F(ConvertSettingsTest, PipsExactVersionsTakeThePlaceOfCondas) {
  const Draft draft =
      of("environment.yml",
         "dependencies:\n- numpy=1.26.4=py_0\n- scipy=1.11\n- opencv=4.6.0=py_0\n- pytorch=2.1.0\n"
         "- pip:\n  - numpy==1.25.0\n  - scipy>=1.10\n  - torch==2.2.0\n");
  EXPECT_EQ(draft.framework, "pytorch==2.2.0");
  EXPECT_EQ(draft.packages, (Strings{"numpy==1.25.0", "scipy==1.11.*",
                                     "opencv-python-headless==4.6.0.*", "scipy>=1.10"}));
}

TEST_F(ConvertSettingsTest, NoBuildsWithoutCudaWhereTorchStandsBesideTensorFlow) {
  of("requirements.txt", "tensorflow>=2.15\ntorch>=2 ; python_version >= '3.9'\n");
  EXPECT_FALSE(parse_recipe(written_, "recipe.yaml").cuda) << written_;
}

TEST_F(ConvertSettingsTest, ALowerBoundOfCudaNamesNone) {
  const Draft draft = of("environment.yml", "dependencies:\n- pytorch>=1.9\n- cudatoolkit>=10\n");
  EXPECT_EQ(draft.cuda, "");
  EXPECT_TRUE(tells(draft, "cudatoolkit>=10"));
  EXPECT_EQ(of("environment.yml", "dependencies:\n- pytorch\n- cudatoolkit>=11.3,<12\n").cuda,
            "11");
}

TEST_F(ConvertSettingsTest, CommentsBehindRequirementsOfSetup) {
  const Strings packages = {"attrs==23.1", "rich>=12", "six"};
  EXPECT_EQ(of("setup.cfg",
               "[options]\ninstall_requires =\n  attrs==23.1  # newer ones break it\n"
               "  rich>=12\t\n  six # any\n")
                .packages,
            packages);
  EXPECT_EQ(of("setup.py",
               "from setuptools import setup\nsetup(name='x', install_requires=['attrs==23.1  # no "
               "newer', 'rich>=12', 'six'])\n")
                .packages,
            packages);
}

TEST_F(ConvertSettingsTest, ExtrasGroupsAndProgramsAreOneLineEach) {
  const Draft draft =
      of("pyproject.toml",
         "[project]\nname = \"x\"\n[project.optional-dependencies]\nfast = []\ndocs = []\n"
         "[project.scripts]\na = \"x:a\"\nb = \"x:b\"\n[dependency-groups]\nlint = []\n"
         "test = []\n");
  EXPECT_EQ(draft.left_out.size(), 3U);
  for (const char* word : {"`docs, fast`", "`a, b`", "`lint, test`"}) {
    EXPECT_TRUE(tells(draft, word)) << word;
  }
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
