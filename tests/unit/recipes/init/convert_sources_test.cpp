// Projects' files of other kinds, folders, environments.
#include <algorithm>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class ConvertSourcesTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) const {
    make_folders((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text, false);
  }
  Draft of(const std::string& name) const {
    Draft draft = convert(folder_.path() / name, folder_.path());
    Draft whole = draft;
    if (whole.name.empty()) whole.name = "x";
    choose_for_host(whole, {"debian:bookworm", ""});
    const std::string text = render_draft(whole, "recipe.yaml");
    EXPECT_NO_THROW(parse_recipe(text, "recipe.yaml")) << text;
    return draft;
  }
  static Strings told(const Draft& draft) {
    Strings all;
    for (const LeftOut& one : draft.left_out) all.push_back(one.text);
    return all;
  }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(ConvertSourcesTest, SetupFilesWithoutRunningThem) {
  put("setup.py",
      "from setuptools import setup\nsetup(name='Seg_Tool', install_requires=['six', "
      "'idna>=2'], python_requires='>=3.11', extras_require={'dev': ['black']})\n");
  const Draft draft = of("setup.py");
  EXPECT_EQ(draft.name, "seg_tool");
  EXPECT_EQ(draft.packages, (Strings{"six", "idna>=2"}));
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(told(draft), Strings{"dev"});
  put("requirements.txt", "tqdm\n");
  put("setup.py", "setup(install_requires=open('requirements.txt').read().split())\n");
  EXPECT_EQ(of("setup.py").packages, Strings{"tqdm"});
  put("setup.py", "setup(install_requires=computed())\n");
  EXPECT_EQ(told(of("setup.py")), Strings{"install_requires"});
  put("setup.cfg", "[options]\ninstall_requires =\n  six\n  idna; python_version > '3'\n");
  EXPECT_EQ(of("setup.cfg").packages, (Strings{"six", "idna ; python_version > '3'"}));
  put("setup.py", "setup()\n");
  EXPECT_EQ(of("setup.py").packages.size(), 2U);
  fs::remove(folder_.path() / "setup.py");
  put("setup.cfg", "[flake8]\n");
  EXPECT_EQ(of("setup.cfg").left_out.size(), 1U);
}

TEST_F(ConvertSourcesTest, SetupFilesThatReadAllFilesOfAFolder) {
  put("requirements/base.txt", "six\n");
  put("requirements/dev.txt", "black\n");
  put("requirements/README.md", "");
  put("setup.py",
      "import os\nextras = {}\nfor name in os.listdir('requirements'):\n"
      "    extras[name[:-4]] = read(name)\n"
      "setup(install_requires=extras.pop('base'), extras_require=extras)\n");
  Draft draft = of("setup.py");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(told(draft), Strings{"dev"});
  ASSERT_EQ(draft.notes.size(), 1U);
  EXPECT_NE(draft.notes.front().why.find("`requirements/base.txt`"), std::string::npos);
  put("setup.py",
      "reqs = []\nfor path in glob('requirements/*.txt'):\n    reqs += open(path)\n"
      "setup(install_requires=reqs)\n");
  draft = of("setup.py");
  EXPECT_EQ(draft.packages, (Strings{"six", "black"}));
  EXPECT_EQ(told(draft), Strings{});
  put("setup.py", "setup(install_requires=[x for p in glob('none/*.txt') for x in open(p)])\n");
  draft = of("setup.py");
  ASSERT_EQ(told(draft), Strings{"install_requires"});
  EXPECT_NE(draft.left_out.front().why.find("`none/*.txt`"), std::string::npos);
}

TEST_F(ConvertSourcesTest, PipfileAndPixi) {
  put("Pipfile",
      "[packages]\nsix = \"*\"\ntool = {git = \"https://h.example/t.git\", ref = \"v1\"}\n"
      "[dev-packages]\nblack = \"*\"\n[requires]\npython_version = \"3.11\"\n");
  const Draft pipfile = of("Pipfile");
  EXPECT_EQ(pipfile.packages, (Strings{"six", "tool @ git+https://h.example/t.git@v1"}));
  EXPECT_EQ(pipfile.python, "3.11");
  EXPECT_EQ(told(pipfile), Strings{"black"});
  put("pixi.toml",
      "[workspace]\nname = \"Sim\"\n[dependencies]\npython = \"3.11.*\"\nnumpy = \">=1.26,<2\"\n"
      "zlib = \"*\"\npytorch = {version = \"2.4.*\"}\n[pypi-dependencies]\neinops = \"*\"\n"
      "[system-requirements]\ncuda = \"12\"\n[activation.env]\nA = \"b\"\n"
      "[target.win-64.dependencies]\nsix = \"*\"\n[target.linux-64.dependencies]\nscipy = \"*\"\n");
  const Draft pixi = of("pixi.toml");
  EXPECT_EQ(pixi.name, "sim");
  EXPECT_EQ(pixi.packages, (Strings{"numpy>=1.26,<2", "einops", "scipy"}));
  EXPECT_EQ(pixi.framework, "pytorch==2.4.*");
  EXPECT_EQ(pixi.cuda, "12");
  EXPECT_EQ(pixi.env.size(), 1U);
  EXPECT_EQ(told(pixi), Strings{"zlib"});
}

TEST_F(ConvertSourcesTest, DevelopmentContainers) {
  put("requirements.txt", "six\n");
  put(".devcontainer/devcontainer.json",
      "// why\n{\"name\": \"Py Dev\", \"image\": "
      "\"mcr.microsoft.com/devcontainers/python:1-3.11\",\n"
      "\"features\": {\"ghcr.io/devcontainers/features/git-lfs:1\": {}}, /* x */\n"
      "\"postCreateCommand\": \"pip install -r requirements.txt\",\n\"remoteUser\": "
      "\"vscode\",}\n");
  const Draft draft = of(".devcontainer/devcontainer.json");
  EXPECT_EQ(draft.name, "py-dev");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(told(draft), Strings{"remoteUser"});
  put("Dockerfile", "FROM debian:12\nRUN pip install idna\n");
  put(".devcontainer/devcontainer.json", "{\"build\": {\"dockerfile\": \"../Dockerfile\"}}");
  EXPECT_EQ(of(".devcontainer/devcontainer.json").packages, Strings{"idna"});
}

TEST_F(ConvertSourcesTest, NotebooksInstallAndImport) {
  put("local.py", "");
  put("a.ipynb",
      "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"!pip install -q six \\\\\\n\", "
      "\"  idna\\n\", \"%pip install tqdm\\n\", \"import torch, os, local\\n\", \"from sklearn.a "
      "import b\\n\", \"!nvidia-smi\\n\", \"%matplotlib inline\"]}, {\"cell_type\": \"markdown\", "
      "\"source\": \"!pip install no\"}], \"metadata\": {\"language_info\": {\"version\": "
      "\"3.11.4\"}}}");
  const Draft draft = of("a.ipynb");
  EXPECT_EQ(draft.packages, (Strings{"six", "idna", "tqdm", "ipykernel", "scikit-learn"}));
  EXPECT_EQ(draft.framework, "pytorch");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_TRUE(told(draft).empty());
}

TEST_F(ConvertSourcesTest, AnEnvironmentsFolder) {
  const std::string packages = ".venv/lib/python3.11/site-packages/";
  put(".venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
  put(packages + "six-1.17.0.dist-info/METADATA", "");
  put(packages + "pip-24.0.dist-info/METADATA", "");
  put(packages + "clip-1.0.dist-info/direct_url.json",
      "{\"url\": \"https://h.example/c.git\", \"vcs_info\": {\"vcs\": \"git\", \"commit_id\": "
      "\"abc\"}}");
  put(packages + "mine-1.0.dist-info/direct_url.json",
      "{\"url\": \"file://" + folder_.path().string() + "/libs/mine\", \"dir_info\": {}}");
  put(packages + "far-1.0.dist-info/direct_url.json", "{\"url\": \"file:///elsewhere\"}");
  const Draft draft = of(".venv");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.packages, (Strings{"clip @ git+https://h.example/c.git@abc", "mine @ ./libs/mine",
                                     "six==1.17.0"}));
  EXPECT_EQ(told(draft).back(), "far @ file:///elsewhere");
  put("conda/conda-meta/numpy-1.26.4-py311_0.json", "{}");
  put("conda/conda-meta/zlib-1.2.13-h0_0.json", "{}");
  EXPECT_EQ(of("conda").packages, Strings{"numpy==1.26.4"});
}

TEST_F(ConvertSourcesTest, TheRichestOfAFolder) {
  put("requirements.txt", "six\n");
  put("pyproject.toml", "[tool.black]\nline-length = 99\n");
  put("packages.txt", "ffmpeg libsm6\n");
  put("README.md", "---\nsdk: gradio\nsdk_version: 4.44.0\npython_version: \"3.11\"\n---\n# x\n");
  put("app.py", "");
  const Draft space = of(".");
  EXPECT_EQ(space.packages, (Strings{"six", "gradio==4.44.0"}));
  EXPECT_EQ(space.system, (Strings{"ffmpeg", "libsm6"}));
  EXPECT_EQ(space.command, (Strings{"python", "app.py"}));
  put("b/.binder/environment.yml", "dependencies: [numpy]\n");
  put("b/.binder/apt.txt", "git\n");
  EXPECT_EQ(of("b").system, Strings{"git"});
  put("environment.yml", "dependencies: [numpy]\n");
  EXPECT_EQ(of(".").packages, (Strings{"numpy", "gradio==4.44.0"}));
  put("Dockerfile", "FROM debian:12\nRUN pip install idna\n");
  EXPECT_EQ(of(".").packages, Strings{"idna"});
  make_folders(folder_.path() / "empty");
  EXPECT_EQ(code_of([&] { of("empty"); }), "source-invalid");
}

TEST_F(ConvertSourcesTest, BindersFolderGoesBeforeWhatBinderReadsWithoutIt) {
  put("environment.yml", "dependencies: [numpy]\n");
  put("apt.txt", "git\n");
  put("setup.py", "from setuptools import setup\nsetup(name='lab', install_requires=['idna'])\n");
  put("binder/requirements.txt", "six\n-r ../requirements.txt\n");
  put("requirements.txt", "attrs\n");
  put("binder/postBuild", "pip install .\n");
  Draft draft = of(".");
  EXPECT_EQ(draft.packages, (Strings{"six", "attrs", "lab @ ."}));
  EXPECT_EQ(draft.system, Strings{});
  ASSERT_EQ(draft.left_out.size(), 1U);
  EXPECT_EQ(draft.left_out.front().text, "environment.yml, apt.txt");
  EXPECT_NE(draft.left_out.front().why.find("Binder reads it alone"), std::string::npos);
  // Other tools' files, and a Dockerfile, are the project's own.
  put("Dockerfile", "FROM debian:12\nRUN pip install idna\n");
  draft = of(".");
  EXPECT_EQ(draft.packages, Strings{"idna"});
  EXPECT_EQ(draft.left_out.back().text, "requirements.txt, postBuild");
  // A folder of that name without Binder's files is any folder.
  put("a/requirements.txt", "six\n");
  put("a/binder/__init__.py", "");
  EXPECT_EQ(of("a").packages, Strings{"six"});
  EXPECT_EQ(of("a").left_out.size(), 0U);
  put("a/binder/apt.txt", "git\n");
  EXPECT_EQ(of("a").packages, Strings{});
  EXPECT_EQ(of("a").system, Strings{"git"});
}

TEST_F(ConvertSourcesTest, LinksOutOfTheFolderAreNotRead) {
  const TemporaryFolder elsewhere{temporary_root()};
  write_file(elsewhere.path() / "secret", "a-secret\n", false);
  put("requirements.txt", "six\n");
  for (const char* name : {"packages.txt", "apt.txt", "runtime.txt"}) {
    fs::create_symlink(elsewhere.path() / "secret", folder_.path() / name);
    const Error error = error_of([&] { of("."); });
    EXPECT_EQ(error.code(), "source-invalid") << name;
    EXPECT_EQ(std::string(error.what()).find("a-secret"), std::string::npos) << error.what();
    fs::remove(folder_.path() / name);
  }
}

TEST_F(ConvertSourcesTest, LinkedFoldersOutOfTheFolderAreNotRead) {
  const TemporaryFolder elsewhere{temporary_root()};
  const fs::path site = elsewhere.path() / "lib/python3.11/site-packages";
  make_folders(site / "secret-1.0.dist-info");
  write_file(elsewhere.path() / "pyvenv.cfg", "version = 3.11.2\n", false);
  write_file(elsewhere.path() / "requirements.txt", "secret\n", false);
  for (const char* name : {"linked", "linked/"}) {
    fs::remove(folder_.path() / "linked");
    fs::create_directory_symlink(elsewhere.path(), folder_.path() / "linked");
    EXPECT_EQ(code_of([&] { of(name); }), "source-invalid") << name;
  }
  fs::create_directory_symlink(site, folder_.path() / "site");
  put("own/pyvenv.cfg", "version = 3.11.2\n");
  make_folders(folder_.path() / "own/lib");
  fs::create_directory_symlink(elsewhere.path() / "lib/python3.11",
                               folder_.path() / "own/lib/python3.11");
  const Draft draft = of("own");
  EXPECT_EQ(draft.packages, Strings{});
  EXPECT_TRUE(std::any_of(draft.left_out.begin(), draft.left_out.end(), [](const LeftOut& one) {
    return one.why.find("leads out") != std::string::npos;
  }));
  put("inner/requirements.txt", "six\n");
  fs::create_directory_symlink("inner", folder_.path() / "to-inner");
  EXPECT_EQ(of("to-inner").packages, Strings{"six"});
}

TEST_F(ConvertSourcesTest, LineEndsOfOtherKindsStartNoKey) {
  put("Dockerfile",
      "FROM debian:12\nENV A=\"x\xC2\x85y: z\"\nSHELL [\"\xE2\x80\xA8packages: [evil]\"]\n"
      "RUN echo a\xE2\x80\xA8packages && \\\n  echo b\n");
  Draft draft = of("Dockerfile");
  draft.name = "x";
  choose_for_host(draft, {"debian:bookworm", ""});
  const std::string text = render_draft(draft, "recipe.yaml");
  EXPECT_EQ(text.find("\xE2\x80\xA8"), std::string::npos) << text;
  EXPECT_EQ(text.find("\xC2\x85"), std::string::npos) << text;
  EXPECT_EQ(parse_recipe(text, "recipe.yaml").env.at("A"), "x\xC2\x85y: z");
}

TEST_F(ConvertSourcesTest, RequirementsAsPeopleHaveThem) {
  std::string text = "\xFF\xFE";
  for (const char c : std::string("numpy==1.26.4\r\nsix\r\n")) text += std::string{c, '\0'};
  put("requirements.txt", text);
  EXPECT_EQ(of("requirements.txt").packages, (Strings{"numpy==1.26.4", "six"}));
  make_folders(folder_.path() / "libs/x");
  put("libs/x/setup.py", "setup(name='x')");
  put("requirements.txt",
      "certifi @ file:///croot/certifi_1707229174982/work/certifi\n"
      "mkl-service @ file:///tmp/build/80754af9/mkl-service_1/work\nmine @ file:///home/me/mine\n"
      "pywin32==308\npywin32-ctypes==1 ; sys_platform == 'win32'\npkg-resources==0.0.0\n"
      "tool==1.0+gabc\n-e git+https://h.example/t.git@v1#egg=Tool[all]&subdirectory=py\n"
      "git+git@h.example:team/My-Repo.git\nlibs/x\n-e ./libs/x[dev]\n");
  const Draft draft = of("requirements.txt");
  EXPECT_EQ(draft.packages, (Strings{"certifi", "tool==1.0",
                                     "Tool[all] @ git+https://h.example/t.git@v1#subdirectory=py",
                                     "My-Repo @ git+ssh://git@h.example/team/My-Repo.git",
                                     "x @ ./libs/x", "x[dev] @ ./libs/x"}));
  EXPECT_EQ(
      told(draft),
      (Strings{"mine @ file:///home/me/mine", "pkg-resources==0.0.0", "certifi", "mkl-service",
               "pywin32==308, pywin32-ctypes==1 ; sys_platform == 'win32'", "tool==1.0+gabc"}));
  ASSERT_EQ(draft.notes.size(), 1U);
}

/// Whatever a file holds: a mistake of the person's, or a recipe that reads back.
TEST_F(ConvertSourcesTest, DamagedFilesOfAllKindsMakeRecipesOrMistakes) {
  const std::map<std::string, std::string> sources = {
      {"setup.py", "a = ['x']\nsetup(name='n', install_requires=a + [\"y>=1\"], **{'b': 1})\n"},
      {"setup.cfg", "[metadata]\nname = a\n[options]\ninstall_requires =\n  b>=1\n"},
      {"Pipfile",
       "[packages]\na = {version = \">=1\", extras = [\"b\"]}\n[requires]\npython_version = "
       "\"3.9\"\n"},
      {"Pipfile.lock",
       "{\"_meta\": {\"requires\": {}}, \"default\": {\"a\": {\"version\": \"==1\"}}}"},
      {"poetry.lock",
       "[[package]]\nname = \"a\"\nversion = \"1\"\n[package.source]\ntype = \"git\"\nurl = "
       "\"https://h/a\"\n"},
      {"pixi.toml",
       "[dependencies]\na = {version = \">=1\"}\n[pypi-dependencies]\nb = {git = "
       "\"https://h/b\"}\n"},
      {"devcontainer.json",
       "{\"image\": \"debian:12\", \"features\": {\"a/python:1\": {\"version\": \"3.9\"}}, /* */}"},
      {"a.ipynb",
       "{\"cells\": [{\"cell_type\": \"code\", \"source\": [\"!pip install a\\n\", \"import "
       "b\"]}]}"},
      {"list.txt", "# conda create --name x\na=1.2=b_0\n@EXPLICIT\nhttps://h/c-1-0.conda\n"}};
  std::mt19937 random(11);
  constexpr std::string_view kBytes = "\n \"'\\${}[]#:;,=<>@-+*\t/&|aA1.\x7f";
  for (const auto& [name, text] : sources) {
    for (int i = 0; i < rounds(60, 400); ++i) {
      std::string damaged = text;
      for (unsigned edits = random() % 4; edits > 0; --edits) {
        const std::size_t at = random() % damaged.size();
        if (random() % 3 == 0) damaged.erase(at, 1 + random() % 5);
        damaged.insert(std::min(at, damaged.size()), 1, kBytes[random() % kBytes.size()]);
      }
      put(name, damaged);
      try {
        of(name);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), "source-invalid") << damaged;
      }
    }
    fs::remove(folder_.path() / name);
  }
}

TEST_F(ConvertSourcesTest, PoetryTakesWhatIsAskedForAlone) {
  put("pyproject.toml",
      "[tool.poetry]\nname = \"x\"\n[tool.poetry.dependencies]\npython = \"~2.7 || ^3.9\"\n"
      "six = \"^1.16\"\npeft = {version = \"^0.10\", optional = true}\n"
      "idna = [{version = \"^3\", python = \"~3.9\"}, {version = \"^2\", platform = \"win32\"}]\n"
      "torch = [{version = \"^2.3\", markers = \"extra != 'cuda'\"},"
      " {version = \"^2.1\", markers = \"extra == 'cuda'\"}]\n"
      "[tool.poetry.extras]\npeft = [\"peft\"]\n[tool.poetry.group.main.dependencies]\n"
      "tqdm = \"^4 || ^6\"\n");
  const Draft draft = of("pyproject.toml");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.framework, "pytorch>=2.3,<3");
  EXPECT_EQ(draft.packages,
            (Strings{"idna>=3,<4 ; python_version >= \"3.9\" and python_version < \"3.10\"",
                     "six>=1.16,<2", "tqdm>=6,<7"}));
}

TEST_F(ConvertSourcesTest, DynamicDependenciesAreReadWhereTheBuildReadsThem) {
  put("requirements/base.txt", "six\n");
  put("pyproject.toml",
      "[project]\nname = \"x\"\ndynamic = [\"dependencies\"]\n"
      "[tool.setuptools.dynamic]\ndependencies = {file = [\"requirements/base.txt\"]}\n");
  EXPECT_EQ(of("pyproject.toml").packages, Strings{"six"});
  put("pyproject.toml", "[project]\nname = \"x\"\ndynamic = [\"dependencies\"]\n");
  put("setup.py", "from setuptools import setup\nsetup(install_requires=['idna'])\n");
  EXPECT_EQ(of("pyproject.toml").packages, Strings{"idna"});
  put("pyproject.toml", "[tool.black]\nline-length = 100\n");
  EXPECT_EQ(of("pyproject.toml").packages, Strings{"idna"});
}

TEST_F(ConvertSourcesTest, PathsAreThoseOfTheFileThatNamesThem) {
  put("server/Pipfile",
      "[packages]\nown = {path = \".\"}\nnear = {path = \"../near\", subdirectory = \"py\"}\n"
      "win = {version = \"*\", sys_platform = \"== 'win32'\"}\n");
  const Draft draft = of("server/Pipfile");
  EXPECT_EQ(draft.packages, (Strings{"near @ file:./near#subdirectory=py", "own @ ./server"}));
  EXPECT_EQ(told(draft), Strings{"win ; sys_platform == 'win32'"});
}

TEST_F(ConvertSourcesTest, LocksOfPoetryGiveTheExtrasThatAreAskedFor) {
  put("poetry.lock",
      "[[package]]\nname = \"six\"\nversion = \"1.16.0\"\noptional = false\n"
      "[metadata]\npython-versions = \">=3.8,<3.9.7 || >3.9.7,<4.0\"\n");
  const Draft draft = of("poetry.lock");
  EXPECT_EQ(draft.packages, Strings{"six==1.16.0"});
  EXPECT_EQ(draft.python, "3.11");
}

TEST_F(ConvertSourcesTest, PixisDefaultEnvironmentIsTaken) {
  put("pixi.toml",
      "[workspace]\nname = \"x\"\n[dependencies]\npython = \"3.11.*\"\nsetuptools = \"<75\"\n"
      "[activation.env]\nA = \"1\"\nB = \"$CONDA_PREFIX/lib\"\n"
      "[feature.gpu.dependencies]\npytorch-gpu = \"*\"\ncupy = \"*\"\n"
      "[feature.gpu.system-requirements]\ncuda = \"11.8\"\n[feature.cpu.dependencies]\n"
      "onnxruntime = \"*\"\n[environments]\ndefault = {features = [\"gpu\"]}\ncpu = [\"cpu\"]\n");
  const Draft draft = of("pixi.toml");
  EXPECT_EQ(draft.framework, "pytorch");
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_EQ(draft.packages, (Strings{"setuptools<75", "cupy-cuda11x"}));
  EXPECT_EQ(draft.env, (std::vector<std::pair<std::string, std::string>>{{"A", "1"}}));
  EXPECT_EQ(told(draft), (Strings{"B=$CONDA_PREFIX/lib", "environments.cpu", "feature.cpu"}));
}

TEST_F(ConvertSourcesTest, CondasOfOtherTools) {
  put("python_env.yaml",
      "python: \"3.9\"\nbuild_dependencies:\n- pip==22\ndependencies:\n- six\n- -r more.txt\n");
  put("more.txt", "idna\n");
  const Draft mlflow = of("python_env.yaml");
  EXPECT_EQ(mlflow.python, "3.9");
  EXPECT_EQ(mlflow.packages, (Strings{"six", "idna"}));
  put("environment.yml",
      "channels: !!python/tuple\n- x\ndependencies:\n- python=3.8|3.9\n- dgl-cuda11.1\n"
      "- setuptools=59.5.0\n- napari[all]\n");
  const Draft conda = of("environment.yml");
  EXPECT_EQ(conda.python, "3.9");
  EXPECT_EQ(conda.cuda, "11");
  EXPECT_EQ(conda.packages, (Strings{"dgl", "setuptools==59.5.0.*", "napari[all]"}));
  EXPECT_EQ(told(conda), Strings{"dgl-cuda11.1"});
}

TEST_F(ConvertSourcesTest, OfCondaNothingIsToldThatLosesNothing) {
  put("environment.yml",
      "channels:\n- pytorch\n- https://mirror.example/cloud/conda-forge/\n"
      "- https://host.example/pkgs/main/linux-64\n- nodefaults\n- xformers\n"
      "- https://host.example/lab\n- nvidia/label/cuda-11.8.0\n"
      "dependencies:\n- numpy\n- pip\n- pip: [six]\n");
  EXPECT_EQ(told(of("environment.yml")),
            Strings{"https://host.example/lab, nvidia/label/cuda-11.8.0"});
  put("environment.yml", "dependencies: [numpy, pip<24.1]\n");
  EXPECT_EQ(told(of("environment.yml")), Strings{"pip"});
}

TEST_F(ConvertSourcesTest, AProjectThatNeedsNothingGetsAPython) {
  put("setup.py", "setup(name='x', install_requires=[])\n");
  Draft draft = of("setup.py");
  choose_for_host(draft, {"debian:bookworm", ""});
  EXPECT_EQ(draft.python, "3.11");
}

TEST_F(ConvertSourcesTest, WheelsByAddressSayWhatTheyAreFor) {
  put("requirements.txt",
      "https://h.example/a_b-1-cp310-cp310-win_amd64.whl; platform_system == \"Windows\"\n"
      "https://h.example/a_b-1-cp310-cp310-linux_x86_64.whl; platform_system == \"Linux\"\n"
      "c@https://h.example/c-1-cp39-cp39-win_amd64.whl\n"
      "torch==2.6.0+cu124; sys_platform == \"linux\"\ntorch; sys_platform == \"darwin\"\n"
      "six==1.16+${TAG}\n");
  const Draft draft = of("requirements.txt");
  EXPECT_EQ(draft.python, "3.10");
  EXPECT_EQ(draft.framework, "pytorch==2.6.0");
  EXPECT_EQ(draft.packages, (Strings{"a_b @ https://h.example/a_b-1-cp310-cp310-linux_x86_64.whl ; "
                                     "platform_system == \"Linux\"",
                                     "six==1.16"}));
}

TEST_F(ConvertSourcesTest, ABrokenProjectBesideItStopsNoList) {
  put("pyproject.toml", "[project\n");
  put("requirements.txt", "six\n-e .\n./\n");
  EXPECT_EQ(of("requirements.txt").packages, Strings{"six"});
}

}  // namespace
}  // namespace mlenv
