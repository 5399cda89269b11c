// Dockerfiles that install projects and environments: uv, Poetry, conda; several stages.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "recipes/init/convert.hpp"
#include "recipes/init/docker_words.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class ProjectBuildTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) const {
    make_folders((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text, false);
  }
  Draft of(std::string_view text) const {
    put("Dockerfile", text);
    Draft draft = convert(folder_.path() / "Dockerfile", folder_.path());
    if (draft.name.empty()) draft.name = "x";
    Draft whole = draft;
    choose_for_host(whole, {"debian:bookworm", ""});
    EXPECT_NO_THROW(parse_recipe(render_draft(whole, "recipe.yaml"), "recipe.yaml")) << text;
    return draft;
  }
  static Strings told(const Draft& draft) {
    Strings all;
    for (const LeftOut& one : draft.left_out) all.push_back(one.text);
    return all;
  }
  static Strings steps(const Draft& draft) {
    Strings all;
    for (const DraftStep& one : draft.run) all.push_back(one.command);
    return all;
  }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(ProjectBuildTest, UvInstallsTheProjectByItsFile) {
  put("pyproject.toml",
      "[project]\nname = \"lab\"\nversion = \"1\"\nrequires-python = \">=3.11\"\ndependencies = "
      "[\"numpy\"]\n[project.optional-dependencies]\ngpu = [\"six\"]\n[dependency-groups]\ndev = "
      "[\"idna\"]\n[build-system]\nrequires = [\"hatchling\"]\n");
  Draft draft =
      of("FROM python:3.11-slim\nCOPY --from=ghcr.io/astral-sh/uv:latest /uv /bin/\n"
         "ENV UV_LINK_MODE=copy PATH=/app/.venv/bin:$PATH\nWORKDIR /app\n"
         "RUN --mount=type=bind,source=uv.lock,target=uv.lock uv sync --no-install-project\n"
         "COPY . .\nRUN uv sync --extra gpu --group dev\nCMD [\"uv\", \"run\", \"-m\", \"lab\"]\n");
  ASSERT_EQ(draft.requirements.size(), 1U);
  EXPECT_EQ(draft.requirements[0], (DraftRequirements{"pyproject.toml", {"gpu"}, {"dev"}}));
  EXPECT_EQ(draft.packages, Strings{"lab[gpu] @ ."});
  EXPECT_EQ(draft.command, (Strings{"python", "-m", "lab"}));
  EXPECT_EQ(draft.system, (Strings{"ca-certificates", "netbase", "tzdata"}));
  put("pyproject.toml", "[project]\nname = \"lab\"\nversion = \"1\"\ndependencies = []\n");
  EXPECT_TRUE(of("FROM python:3.11\nRUN uv sync\n").packages.empty());  // none to build
}

TEST_F(ProjectBuildTest, PoetryAndPdmByTheirLocks) {
  put("pyproject.toml",
      "[tool.poetry]\nname = \"lab\"\n[tool.poetry.dependencies]\npython = \"^3.11\"\nsix = "
      "\"^1.0\"\n");
  put("poetry.lock",
      "[[package]]\nname = \"six\"\nversion = \"1.17.0\"\noptional = false\ngroups = "
      "[\"main\"]\n[[package]]\nname = \"black\"\nversion = \"24.1\"\ngroups = [\"dev\"]\n"
      "[[package]]\nname = \"tool\"\nversion = \"1\"\n[package.source]\ntype = \"git\"\nurl = "
      "\"https://h.example/t\"\nresolved_reference = \"abc\"\n[metadata]\npython-versions = "
      "\"^3.11\"\n");
  const Draft draft = of(
      "FROM python:3.11\nRUN pip install poetry && poetry config virtualenvs.create false\n"
      "RUN poetry install --no-root --only main && rm -rf \"$(poetry config cache-dir)/cache\"\n");
  EXPECT_EQ(draft.packages, (Strings{"six==1.17.0", "tool @ git+https://h.example/t@abc"}));
  const Strings left = told(draft);
  EXPECT_EQ(left.back(), "rm -rf \"$(poetry config cache-dir)/cache\"");
  EXPECT_EQ(std::count(left.begin(), left.end(), "black"), 1);
  EXPECT_TRUE(draft.run.empty());
  const Draft own = of("FROM python:3.11\nRUN poetry install --with dev\n");
  EXPECT_EQ(own.packages, (Strings{"six==1.17.0", "black==24.1",
                                   "tool @ git+https://h.example/t@abc", "lab @ ."}));
}

TEST_F(ProjectBuildTest, AnExportedLockIsInstalled) {
  put("pyproject.toml", "[tool.poetry]\nname = \"lab\"\n");
  put("poetry.lock", "[[package]]\nname = \"six\"\nversion = \"1.17.0\"\n");
  EXPECT_EQ(of("FROM python:3.11 AS b\nRUN poetry export -o requirements.txt\nFROM "
               "python:3.11-slim\nCOPY --from=b /requirements.txt .\nRUN pip install -r "
               "requirements.txt\n")
                .packages,
            Strings{"six==1.17.0"});
  EXPECT_EQ(of("FROM python:3.11 AS b\nRUN poetry install --no-root\nFROM python:3.11-slim\nENV "
               "VIRTUAL_ENV=/app/.venv\nCOPY --from=b ${VIRTUAL_ENV} ${VIRTUAL_ENV}\n")
                .packages,
            Strings{"six==1.17.0"});
}

TEST_F(ProjectBuildTest, PipenvByItsLockOrFile) {
  put("Pipfile",
      "[packages]\nsix = \"*\"\nx = {version = \">=1\", extras = [\"a\"]}\n"
      "[requires]\npython_version = \"3.11\"\n");
  EXPECT_EQ(of("FROM debian:12\nRUN pipenv install --system\n").packages,
            (Strings{"six", "x[a]>=1"}));
  put("Pipfile.lock",
      "{\"_meta\": {}, \"default\": {\"six\": {\"version\": \"==1.17.0\", "
      "\"markers\": \"python_version >= '3'\"}}}");
  EXPECT_EQ(of("FROM debian:12\nRUN pipenv sync\n").packages,
            Strings{"six==1.17.0 ; python_version >= '3'"});
}

TEST_F(ProjectBuildTest, CondaInRun) {
  put("env.yml", "name: other\ndependencies: [numpy, zlib]\n");
  const Draft draft = of(
      "FROM continuumio/miniconda3\nRUN conda install -y -c conda-forge scipy=1.11 ffmpeg tk\n"
      "COPY env.yml /tmp/\nRUN mamba env create -f /tmp/env.yml && conda clean -afy\n"
      "SHELL [\"conda\", \"run\", \"-n\", \"x\", \"/bin/bash\", \"-c\"]\n"
      "RUN conda run -n x pip install six\n"
      "CMD [\"conda\", \"run\", \"--no-capture-output\", \"-n\", \"x\", \"python\", \"a.py\"]\n");
  EXPECT_EQ(draft.packages, (Strings{"scipy==1.11.*", "numpy", "six"}));
  EXPECT_EQ(draft.system,
            (Strings{"ca-certificates", "netbase", "tzdata", "git", "ffmpeg", "python3-tk"}));
  EXPECT_EQ(draft.command, (Strings{"python", "a.py"}));
}

TEST_F(ProjectBuildTest, AStageWhoseEnvironmentIsCopiedIsInstalled) {
  put("requirements.txt", "six\n");
  put("app.py", "");
  const Draft draft = of(
      "FROM python:3.11 AS build\nWORKDIR /app\nENV A=b\nRUN apt-get install -y gcc\n"
      "COPY requirements.txt .\nRUN python -m venv /opt/venv && /opt/venv/bin/pip install -r "
      "requirements.txt\nCOPY app.py .\nRUN make\n"
      "FROM python:3.11-slim\nCOPY --from=build /opt/venv /opt/venv\nCOPY --from=build /app/app.py "
      "/srv/\nCOPY --from=build /app/out /srv/\nWORKDIR /srv\nCMD [\"/opt/venv/bin/python\", "
      "\"app.py\"]\n");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(draft.system, (Strings{"ca-certificates", "netbase", "tzdata", "gcc", "python3-dev"}));
  EXPECT_TRUE(draft.env.empty());
  EXPECT_EQ(draft.workdir, "/srv");
  ASSERT_EQ(draft.files.size(), 1U);
  EXPECT_EQ(draft.files[0].first, "app.py");
  EXPECT_EQ(draft.command, (Strings{"python", "app.py"}));
  EXPECT_EQ(told(draft),
            (Strings{"COPY --from=build /app/out /srv/", "python -m venv /opt/venv", "make"}));
}

TEST_F(ProjectBuildTest, StagesThatCopyFromThemselvesEnd) {
  EXPECT_EQ(told(of("FROM debian:12 AS a\nCOPY --from=a /x/venv /y\n")).size(), 1U);
  EXPECT_EQ(told(of("FROM debian:12 AS a\nCOPY --from=b /venv /y\nFROM debian:12 AS b\nCOPY "
                    "--from=a /venv /z\n"))
                .size(),
            1U);
}

TEST_F(ProjectBuildTest, HeredocsAreStepsAndFiles) {
  const Draft draft =
      of("FROM debian:12\nARG V=1\nWORKDIR /app\nCOPY <<EOF conf/a.txt\nv=$V\nEOF\n"
         "RUN python3 <<E\nprint(1)\nE\nRUN cat <<E >/x\ny\nE\nRUN <<E\n#!/bin/sh\nmake\nE\n");
  EXPECT_EQ(steps(draft),
            (Strings{"mkdir -p /app/conf\ncat > /app/conf/a.txt <<'EOF'\nv=1\nEOF",
                     "python3 <<E\nprint(1)\nE", "cat <<E >/x\ny\nE",
                     "cat > /tmp/step <<'E'\n#!/bin/sh\nmake\nE\nchmod +x /tmp/step\n/tmp/step"}));
}

TEST_F(ProjectBuildTest, ToolsThatMlenvDoesWithoutAreNotInstalled) {
  const Draft draft =
      of("FROM debian:12\nRUN curl -LsSf https://astral.sh/uv/install.sh | sh\n"
         "RUN curl -sSL https://install.python-poetry.org | python3 - && make\n"
         "RUN curl https://sh.rustup.rs -sSf | sh -s -- -y\n"
         "RUN wget https://h.example/Miniconda3-latest.sh -O /tmp/miniconda.sh && bash "
         "/tmp/miniconda.sh -b\nSHELL [\"/bin/bash\", \"-c\"]\nRUN source x && python -m "
         "nltk.downloader "
         "punkt\n");
  EXPECT_EQ(draft.system, (Strings{"rustc", "cargo", "make"}));
  EXPECT_EQ(steps(draft), (Strings{"cd /\nmake",
                                   "cd /\nbash -euo pipefail -c 'source x\npython -m "
                                   "nltk.downloader punkt'"}));
  EXPECT_TRUE(draft.run[1].network);
}

TEST_F(ProjectBuildTest, AClonedRepositoryIsInstalledByItsAddress) {
  const Draft draft = of(
      "FROM debian:12\nRUN git clone --depth 1 -b v1 https://h.example/team/Det.git /opt/det && cd "
      "/opt/det && pip install -e .[all]\nWORKDIR /w\nRUN git clone https://h.example/mm\nRUN pip "
      "install ./mm/py\nWORKDIR mm\nRUN pip install .\n");
  EXPECT_EQ(draft.packages, (Strings{"Det[all] @ git+https://h.example/team/Det.git@v1",
                                     "mm @ git+https://h.example/mm"}));
}

TEST(OwnCommand, IsWithoutWhatStartsIt) {
  EXPECT_EQ(own_command({"uv", "run", "--no-sync", "a.py", "-x"}),
            (Strings{"python", "a.py", "-x"}));
  EXPECT_EQ(own_command({"poetry", "run", "uvicorn", "a:b"}), (Strings{"uvicorn", "a:b"}));
  EXPECT_EQ(own_command({"/app/.venv/bin/uvicorn", "a:b"}), (Strings{"uvicorn", "a:b"}));
  EXPECT_EQ(own_command({"uv", "run"}), (Strings{"uv", "run"}));
  EXPECT_EQ(own_command({"python", "run"}), (Strings{"python", "run"}));
  EXPECT_EQ(own_command({}), Strings{});
}

}  // namespace
}  // namespace mlenv
