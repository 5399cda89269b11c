// Constructs that files of public projects have often: Dockerfiles, Compose's files, Cog's,
// notebooks, Spaces, development containers.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/unit/recipes/init/conversion_test.hpp"

namespace mlenv {
namespace {

using Env = std::vector<std::pair<std::string, std::string>>;

class PublicFilesTest : public ConversionTest {};

TEST_F(PublicFilesTest, TheOldFormOfEnvTakesQuotesAway) {
  const Draft draft =
      of_docker("FROM debian:12\nARG N=2\nENV A \"$N\"\nENV B 'x  y' z\nENV C \"\"\nENV D 1 2\n");
  EXPECT_EQ(draft.env, (Env{{"A", "2"}, {"B", "x  y z"}, {"C", ""}, {"D", "1 2"}}));
}

TEST_F(PublicFilesTest, AVariableThatAddsToItselfKeepsTheRest) {
  const Draft draft = of_docker(
      "FROM debian:12\nENV PYTHONPATH=/a:$PYTHONPATH\nENV PYTHONPATH=${PYTHONPATH}:/b\n"
      "ENV LIB=${LIB:+:$LIB}/c OTHER=$UNKNOWN:/d\nENV LIBS=$LIBSX:$LIBS\n");
  EXPECT_EQ(draft.env, (Env{{"PYTHONPATH", "/a:/b"}, {"LIB", "/c"}}));
  EXPECT_TRUE(tells(draft, "OTHER=")) << "another variable is not known";
  EXPECT_TRUE(tells(draft, "LIBS="));
  const Draft other = of_docker("FROM host.example/cuda:1\nENV LIB=/c:$LIB\n");
  EXPECT_TRUE(other.env.empty());
  EXPECT_TRUE(tells(other, "it adds to what the base image says"));
}

TEST_F(PublicFilesTest, ArgumentsKeepTheirValuesBehindACopiedStage) {
  const Draft draft = of_docker(
      "FROM debian:12 AS a\nARG V=9\nRUN mkdir /o\nFROM debian:12\nARG V=1.16.0\nARG NONE\n"
      "COPY --from=a /o /p\nRUN pip install six==${V}\nRUN if [ -n \"$NONE\" ]; then pip install "
      "idna; fi\n");
  EXPECT_EQ(draft.packages, Strings{"six==1.16.0"});
}

TEST_F(PublicFilesTest, AReleaseThatNoBaseIsMadeOfIsTold) {
  for (const auto& [image, word] : std::vector<std::pair<std::string, std::string>>{
           {"nvidia/cuda:11.1-devel-ubuntu18.04", "Ubuntu 18.04"},
           {"nvidia/cuda:9.0-base-ubuntu16.04", "Ubuntu 16.04"},
           {"nvidia/cuda:11.2-base-centos7", "CentOS 7"},
           {"nvidia/cuda:12.2-base-ubi8", "ubi8"},
           {"h.example/devcontainers/base:bionic", "bionic"},
           {"h.example/devcontainers/base:ubuntu-18.04", "Ubuntu 18.04"}}) {
    EXPECT_TRUE(tells(of_docker("FROM " + image + "\n"), word)) << image;
  }
  const Draft known = of_docker("FROM nvidia/cuda:11.8.0-base-ubuntu20.04\n");
  EXPECT_EQ(known.base, "ubuntu:focal");
  EXPECT_FALSE(tells(known, "no release that a base is made of"));
}

TEST_F(PublicFilesTest, APinStaysWhereALaterBoundAllowsIt) {
  Draft draft = of_docker(
      "FROM pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime\nRUN pip install 'torch>=2' six==1.15\n"
      "RUN pip install 'six>=1.10'\n");
  EXPECT_EQ(draft.framework, "pytorch==2.3.1");
  EXPECT_NE(std::find(draft.packages.begin(), draft.packages.end(), "six==1.15"),
            draft.packages.end());
  draft = of_docker(
      "FROM pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime\nRUN pip install 'torch>=2.4'\n");
  EXPECT_EQ(draft.framework, "pytorch>=2.4");
}

TEST_F(PublicFilesTest, AWheelThatIsDownloadedKeepsItsAddress) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN wget https://host.example/w/ops-1%2Bcu12-cp311-cp311-linux_x86_64.whl "
      "&& pip install ops-1+cu12-cp311-cp311-linux_x86_64.whl\n");
  EXPECT_EQ(draft.packages,
            Strings{"ops @ https://host.example/w/ops-1%2Bcu12-cp311-cp311-linux_x86_64.whl"});
  EXPECT_TRUE(draft.run.empty());
}

TEST_F(PublicFilesTest, AnAddressThatIsAddedIsFetchedByAStep) {
  const Draft draft = of_docker(
      "FROM debian:12\nADD https://host.example/a/tini /usr/bin/\n"
      "ADD https://astral.sh/uv/install.sh /i.sh\nADD https://git.example/a.git /g\n"
      "ADD https://me:secret@host.example/b /b\n");
  EXPECT_EQ(
      steps(draft),
      Strings{"cd /\nmkdir -p /usr/bin\ncurl -fsSL -o /usr/bin/tini https://host.example/a/tini"});
  EXPECT_TRUE(draft.run.front().network);
  EXPECT_EQ(draft.system, Strings{"curl"}) << "the step needs it";
  EXPECT_TRUE(tells(draft, "ADD https://git.example/a.git"));
  EXPECT_TRUE(tells(draft, "ADD https://***@host.example/b"));
}

TEST_F(PublicFilesTest, WhatAStepStartsIsInTheImage) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN apt-get install -y git=1:*\nRUN git clone https://git.example/a && cd a "
      "&& (make && unzip x.zip)\nSHELL [\"/bin/bash\", \"-c\"]\nRUN wget -O /x "
      "https://host.example/x\n");
  EXPECT_EQ(draft.system, (Strings{"git", "make", "unzip", "wget"}));
}

TEST_F(PublicFilesTest, WhatIsNotNeededIsToldInOneLine) {
  const Draft draft = of_docker(
      "FROM debian:12\nLABEL a=b\nLABEL c=d\nRUN apt-get update && apt-get install -y less && "
      "apt-get clean\nRUN apt-get update && rm -rf /var/tmp/* ~/.cache/pip\n"
      "RUN sed -i s/a/b/ /etc/apt/sources.list && apt-get install -y unusual-thing\n");
  EXPECT_EQ(draft.left_out.size(), 3U);
  EXPECT_TRUE(tells(draft, "`apt-get update, apt-get clean, rm -rf"));
  EXPECT_TRUE(tells(draft, "`LABEL a=b, LABEL c=d`"));
  EXPECT_TRUE(draft.run.empty());
  EXPECT_EQ(draft.system, (Strings{"less", "unusual-thing"}));
}

TEST_F(PublicFilesTest, BuildsWithAnIndexOfTheirOwnAreNotToldAsLost) {
  const std::string url = "https://wheels.example/whl/cpu";
  Draft draft =
      of_docker("FROM debian:12\nRUN pip install torch==2.4.0+cpu --index-url " + url + "\n");
  EXPECT_TRUE(draft.left_out.empty());
  draft = of_docker("FROM debian:12\nRUN pip install torch==2.4.0+cpu\n");
  EXPECT_TRUE(tells(draft, "builds named `+cpu`"));
}

TEST_F(PublicFilesTest, AListInTmpThatPipReadsIsNotToldAsLost) {
  put("list.txt", "six\n");
  put("other.txt", "x\n");
  const Draft draft = of_docker(
      "FROM debian:12\nCOPY list.txt /tmp/\nCOPY other.txt /tmp/\nRUN pip install -r "
      "/tmp/list.txt\n");
  EXPECT_FALSE(tells(draft, "list.txt"));
  EXPECT_TRUE(tells(draft, "COPY other.txt"));
}

TEST_F(PublicFilesTest, TheProjectByItsPlaceInTheImage) {
  put("pyproject.toml", "[project]\nname = \"lab\"\nversion = \"1\"\n");
  const Draft draft = of_docker("FROM debian:12\nCOPY . /srv/lab\nRUN pip install /srv/lab\n");
  EXPECT_EQ(draft.packages, Strings{"lab @ ."});
}

TEST_F(PublicFilesTest, AToolOfItsOwnEnvironmentIsNotNeeded) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN pip install pipx && pipx ensurepath\nRUN pipx install poetry\n"
      "RUN curl -LsSf https://astral.sh/uv/install.sh | sh && . $HOME/.local/bin/env\n"
      "RUN pipx install dvc\n");
  EXPECT_EQ(draft.packages, Strings{"dvc"});
  EXPECT_TRUE(draft.run.empty());
}

TEST_F(PublicFilesTest, AScriptThatInstallsIsRead) {
  put("s/deps.sh", "#!/bin/sh\nset -e\napt-get install -y less\npip install six\n");
  put("s/train.sh", "python train.py\n");
  put("s/odd.sh", "for i in $(seq 9); do pip install x$i; done\n");
  Draft draft =
      of_docker("FROM debian:12\nWORKDIR /w\nCOPY s s\nRUN bash s/deps.sh\nRUN bash s/train.sh\n");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(draft.system, Strings{"less"});
  EXPECT_EQ(steps(draft), Strings{"bash s/train.sh"});
  draft = of_docker("FROM debian:12\nWORKDIR /w\nCOPY s s\nRUN ./s/odd.sh\n");
  EXPECT_EQ(steps(draft), Strings{"./s/odd.sh"});
  put(".devcontainer/devcontainer.json",
      "{\"image\": \"debian:12\", \"postCreateCommand\": \"bash ./s/deps.sh\"}");
  draft = of(".devcontainer/devcontainer.json");
  EXPECT_EQ(draft.packages, Strings{"six"});
}

TEST_F(PublicFilesTest, AFileThatTheProjectDoesNotHaveIsNothingToTell) {
  put("list.txt", "six\n");
  put("devcontainer.json",
      "{\"image\": \"debian:12\", \"updateContentCommand\": \"[ -f apt.list ] && sudo xargs apt "
      "install -y <apt.list; [ -f list.txt ] && pip install -r list.txt; echo done\"}");
  Draft draft = of("devcontainer.json");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_TRUE(draft.left_out.empty());
  put("devcontainer.json",
      "{\"image\": \"debian:12\", \"name\": \"Ubuntu\", \"features\": {\"h.example/f/python:1\": "
      "{}, "
      "\"h.example/f/uv:1\": {}}}");
  draft = of("devcontainer.json");
  EXPECT_TRUE(draft.wants_python);
  EXPECT_TRUE(draft.name.empty()) << "the name of a template";
  EXPECT_EQ(draft.left_out.size(), 1U);
}

TEST_F(PublicFilesTest, CogsOldKeysAreRead) {
  put("cog.yaml",
      "build:\n  gpu: true\n  python_packages: [six, mmcv-full==1.5]\n"
      "  run: [touch /opt/one]\n"
      "  pre_install:\n    - pip install idna\n    - touch /opt/two\n"
      "  python_find_links: [\"https://host.example/mmcv/dist/index.html\"]\n"
      "  python_extra_index_urls: [\"https://index.example/whl/cu118\"]\n");
  Draft draft = of("cog.yaml");
  EXPECT_EQ(draft.packages, (Strings{"six", "mmcv-full==1.5", "idna"}));
  EXPECT_EQ(steps(draft), (Strings{"touch /opt/one", "touch /opt/two"}));
  const DraftIndex page{"mmcv-full", "https://host.example/mmcv/dist/index.html", true};
  EXPECT_EQ(draft.index, std::vector{page});
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_FALSE(tells(draft, "pre_install"));
  // Cog's first releases.
  put("cog.yaml",
      "environment:\n  python_version: \"3.9\"\n  python_packages: [six]\n  architectures: "
      "[cpu]\nmodel: infer.py:Model\n");
  draft = of("cog.yaml");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(draft.python, "3.9");
  EXPECT_TRUE(tells(draft, "`environment.architectures: [cpu]`"));
  EXPECT_TRUE(tells(draft, "`model: infer.py:Model`"));
}

TEST_F(PublicFilesTest, CogsPackagesMayHaveOptionsOfPip) {
  put("cog.yaml",
      "build:\n  python_packages:\n    - \"torch==2.0.1 --index-url "
      "https://wheels.example/whl/cu118\"\n    - six ; python_version > '3.0'\n");
  const Draft draft = of("cog.yaml");
  EXPECT_EQ(draft.framework, "pytorch==2.0.1");
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_EQ(draft.packages, Strings{"six ; python_version > '3.0'"});
  EXPECT_TRUE(draft.left_out.empty());
}

TEST_F(PublicFilesTest, AFileOfComposeByItself) {
  put("app/Dockerfile",
      "FROM python:3.11-slim\nARG V=1\nENV V=$V\nENTRYPOINT [\"python\"]\nCMD [\"a.py\"]\n");
  put("docker-compose.yml",
      "services:\n  db:\n    image: redis:7\n  app:\n    build: {context: app, args: {V: "
      "\"${V:-2}\"}}\n    command: [b.py, '${N:-3}']\n    working_dir: /w\n    environment: {A: "
      "1, B: $HOST_B}\n    ports: ['80:80']\n");
  Draft draft = of("docker-compose.yml");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.command, (Strings{"python", "b.py", "3"}));
  EXPECT_EQ(draft.workdir, "/w");
  EXPECT_EQ(draft.env, (Env{{"V", "2"}, {"A", "1"}}));
  EXPECT_TRUE(tells(draft, "`db`: other services"));
  EXPECT_TRUE(tells(draft, "B=$HOST_B"));
  EXPECT_TRUE(tells(draft, "`ports`"));
  put("stack.yaml",
      "services:\n  one:\n    image: ${IMAGE:-python:3.11-slim}\n    entrypoint: python -u x.py\n");
  draft = of("stack.yaml");
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.command, (Strings{"python", "-u", "x.py"}));
  put("compose.yaml", "services: {a: {build: {context: app}, entrypoint: [sh, '${X}']}}\n");
  draft = of("compose.yaml");
  EXPECT_EQ(draft.command, (Strings{"python", "a.py"}));
  EXPECT_TRUE(tells(draft, "entrypoint"));
  put("compose.yaml", "services: {}\n");
  EXPECT_TRUE(tells(of("compose.yaml"), "it names no service"));
}

TEST_F(PublicFilesTest, ASpacesReadmeByItself) {
  put("README.md", "---\nsdk: gradio\nsdk_version: 5.1.0\n---\n");
  put("requirements.txt", "six\ngradio>=4\n");
  EXPECT_EQ(of("README.md").packages, (Strings{"six", "gradio==5.1.0"}));
  put("README.md", "---\nsdk: docker\n---\n");
  EXPECT_THROW(of("README.md"), Error) << "there is no Dockerfile";
  put("Dockerfile", "FROM python:3.11-slim\nRUN pip install idna\n");
  EXPECT_EQ(of("README.md").packages, Strings{"idna"});
}

TEST_F(PublicFilesTest, MagicsThatStartTheShell) {
  put("pyproject.toml", "[project]\nname = \"lab\"\nversion = \"1\"\n");
  put("n/a.ipynb",
      R"({"cells": [{"cell_type": "code", "source": ["%shell pip install six\n", "!!pip install a.b\n",
      "%pip install -e ..\n", "%cd x\n", "!python -V\n", "import a, lost, IPython\n"]}],
      "metadata": {"language_info": {"version": "3.11.9"}}})");
  const Draft draft = of("n/a.ipynb");
  EXPECT_EQ(draft.packages, (Strings{"six", "a.b", "lab @ .", "ipykernel"}));
  EXPECT_EQ(draft.python, "3.11");
  EXPECT_EQ(draft.left_out.size(), 2U);
  EXPECT_TRUE(tells(draft, "`python -V`"));
  EXPECT_TRUE(tells(draft, "`lost`"));
}

TEST_F(PublicFilesTest, ANotebookThatInstallsNothingHasWhatItImports) {
  put("b.ipynb",
      R"({"cells": [{"cell_type": "code", "source": "import numpy as np, lost\nfrom sklearn import x"}],
      "metadata": {}})");
  const Draft draft = of("b.ipynb");
  EXPECT_EQ(draft.packages, (Strings{"ipykernel", "numpy", "scikit-learn"}));
  EXPECT_EQ(draft.notes.size(), 1U);
  EXPECT_TRUE(tells(draft, "`lost`"));
}

TEST_F(PublicFilesTest, ANotebookThatInstallsSomethingHasWhatElseItImports) {
  put("own.py", "");
  put("b.ipynb",
      R"({"cells": [{"cell_type": "code", "source": "!pip install pandas==2.1\n"},
      {"cell_type": "code", "source": "%%writefile scipy.py\nx = 1"},
      {"cell_type": "code", "source": "!git clone https://git.example/a/sklearn.git"},
      {"cell_type": "code", "source":
       "import pandas, numpy, os, own, lost, scipy, sklearn\nfrom PIL import Image"}],
      "metadata": {}})");
  const Draft draft = of("b.ipynb");
  EXPECT_EQ(draft.packages, (Strings{"pandas==2.1", "ipykernel", "pillow", "numpy"}));
  EXPECT_TRUE(tells(draft, "`lost`"));
  EXPECT_FALSE(tells(draft, "`own"));
}

TEST_F(PublicFilesTest, RepositoriesThatCellsClone) {
  put("c.ipynb",
      R"({"cells": [{"cell_type": "code", "source":
       "!git clone https://git.example/a/lab /content/lab\n!git clone https://git.example/a/kit\n%cd /content/lab\n!pip install -e .\n%cd /content\n!pip install ./kit tensorflow-addons\n!pip install -r kit/needs.txt\nimport tensorflow"}],
      "metadata": {}})");
  const Draft draft = of("c.ipynb");
  EXPECT_EQ(draft.packages,
            (Strings{"lab @ git+https://git.example/a/lab", "kit @ git+https://git.example/a/kit",
                     "tensorflow-addons", "ipykernel"}));
  EXPECT_EQ(draft.framework, "tensorflow") << "not a part of tensorflow-addons";
  EXPECT_TRUE(tells(draft, "`needs.txt` of the repository https://git.example/a/kit"));
}

TEST_F(PublicFilesTest, PathsOfNotebooksAreToldAsWritten) {
  put("d.ipynb",
      R"({"cells": [{"cell_type": "code", "source":
       "!pip install -r /content/kit/needs.txt\n!pip install -r '/kaggle/working/more.txt'\n!git clone https://git.example/a/kit /content/kit && bash /content/kit/run.sh"},
       {"cell_type": "code", "source": "%%bash\npip install -r /content/late.txt"}],
      "metadata": {}})");
  put("late.txt", "six\n");
  const Draft draft = of("d.ipynb");
  EXPECT_EQ(draft.packages, (Strings{"six", "ipykernel"}));
  EXPECT_TRUE(tells(draft, "`-r /content/kit/needs.txt`"));
  EXPECT_TRUE(tells(draft, "`-r /kaggle/working/more.txt`"));
  EXPECT_TRUE(tells(draft, "bash /content/kit/run.sh"));
  EXPECT_FALSE(tells(draft, " /kit"));
}

TEST_F(PublicFilesTest, AFolderOfTheWorkspaceHasTheProjectsName) {
  put("lab/.devcontainer/gpu/devcontainer.json",
      R"({"image": "debian:12", "workspaceFolder": "/w/${localWorkspaceFolderBasename}"})");
  EXPECT_EQ(of("lab/.devcontainer/gpu/devcontainer.json").workdir, "/w/lab");
  put("lab/.devcontainer.json", R"({"image": "debian:12", "workspaceFolder": "/w/${other}"})");
  EXPECT_TRUE(of("lab/.devcontainer.json").workdir.empty());
}

TEST_F(PublicFilesTest, WhatATagSaysOfSomebodysImage) {
  Draft draft = of_docker("FROM web/server:python3.12\nRUN pip install six\n");
  EXPECT_EQ(draft.python, "3.12");
  EXPECT_TRUE(tells(draft, "there is no default registry"));
  EXPECT_TRUE(tells(draft, "`base: HOST/web/server:python3.12`"));
  draft = of_docker("FROM redis\n");
  EXPECT_TRUE(tells(draft, "`base: HOST/library/redis:latest`"));
  draft = of_docker("FROM lab/pytorch:2.0.1-cuda11.8\n");
  EXPECT_EQ(draft.framework, "pytorch==2.0.1");
  EXPECT_EQ(draft.cuda, "11");
}

TEST_F(PublicFilesTest, APipeOfOrdinaryProgramsIsAStep) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN curl -L https://host.example/x.tgz | tar xz -C /opt && touch /opt/y\n"
      "RUN curl https://host.example/s | bash\n");
  EXPECT_EQ(steps(draft),
            Strings{"cd /\ncurl -L https://host.example/x.tgz | tar xz -C /opt\ntouch /opt/y"});
  EXPECT_TRUE(draft.run.front().network);
  EXPECT_TRUE(tells(draft, "https://host.example/s"));
}

TEST_F(PublicFilesTest, ListsThatCommandsMakeOfOthers) {
  put("requirements.txt", "six\ntorch==2.1\nidna==3.7\n");
  put("labels.txt", "cat\ndog\n");
  Draft draft = of_docker(
      "FROM debian:12\nCOPY requirements.txt labels.txt /app/\nWORKDIR /app\n"
      "RUN grep -v '^torch' requirements.txt | sed 's/==/>=/' > /tmp/short.txt && "
      "pip install -r /tmp/short.txt\nRUN sed -i /dog/d labels.txt\n");
  EXPECT_EQ(draft.packages, (Strings{"six", "idna>=3.7"}));
  EXPECT_TRUE(draft.framework.empty());
  EXPECT_EQ(steps(draft), Strings{"sed -i /dog/d labels.txt"}) << "no list of packages";
  EXPECT_TRUE(draft.left_out.empty());
  draft = of_docker(
      "FROM debian:12\nCOPY . /app\nWORKDIR /app\nRUN sed -i /torch/d requirements.txt\n"
      "RUN echo attrs >> requirements.txt\nRUN mv requirements.txt r.txt && pip install -r r.txt "
      "&& rm r.txt\n");
  EXPECT_EQ(draft.packages, (Strings{"six", "idna==3.7", "attrs"}));
  EXPECT_TRUE(draft.run.empty());
  draft = of_docker("FROM debian:12\nCOPY . /app\nRUN sed -i /torch/d /app/requirements.txt\n");
  EXPECT_TRUE(tells(draft, "a list that no command here installs"));
}

TEST_F(PublicFilesTest, AListOfARepositoryThatTheBuildClones) {
  const std::string clone =
      "FROM debian:12\nWORKDIR /w\nRUN git clone https://git.example/a/lab.git && cd lab && pip "
      "install -r reqs/gpu.txt\n";
  Draft draft = of_docker(clone);
  EXPECT_TRUE(tells(draft, "`reqs/gpu.txt` of the repository https://git.example/a/lab.git"));
  EXPECT_TRUE(tells(draft, "`requirements: [gpu.txt]`"));
  put("reqs/gpu.txt", "six\n");
  EXPECT_TRUE(of_docker(clone).packages.empty()) << "another repository's";
  put(".git/config", "[remote \"origin\"]\n\turl = git@git.example:a/lab.git\n");
  EXPECT_EQ(of_docker(clone).packages, Strings{"six"}) << "it is this one";
}

TEST_F(PublicFilesTest, AFolderAboveAnEnvironmentIsCopied) {
  const Draft draft = of_docker(
      "FROM debian:12 AS a\nRUN python3 -m venv /opt/a/env\nENV PATH=/opt/a/env/bin:$PATH\n"
      "RUN pip install six\nFROM debian:12\nCOPY --from=a /opt/a /opt/a\n");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_FALSE(tells(draft, "made in another stage"));
}

TEST_F(PublicFilesTest, TheCompilerOfCuda) {
  const std::string kernels = "RUN python3 setup.py build_ext --inplace\n";
  Draft draft =
      of_docker("FROM nvidia/cuda:13.0.1-devel-ubuntu24.04\nRUN pip install torch\n" + kernels);
  EXPECT_TRUE(draft.nvcc);
  draft = of_docker("FROM nvidia/cuda:13.0.1-devel-ubuntu24.04\nRUN pip install torch\n");
  EXPECT_FALSE(draft.nvcc) << "nothing needs it";
  draft = of_docker("FROM pytorch/pytorch:2.3.1-cuda12.1-cudnn8-devel\n" + kernels);
  EXPECT_FALSE(draft.nvcc);
  EXPECT_TRUE(tells(draft, "bring no compiler"));
}

TEST_F(PublicFilesTest, CudaOfNvidiasArchive) {
  const Draft draft = of_docker(
      "FROM ubuntu:22.04\nRUN wget https://host.example/cuda-keyring_1.1-1_all.deb && dpkg -i "
      "cuda-keyring_1.1-1_all.deb && apt-get update && apt-get install -y cuda-toolkit-12-4 cuda "
      "tesseract-ocr\nRUN pip install torch\n");
  EXPECT_EQ(draft.cuda, "12");
  EXPECT_EQ(draft.system, Strings{"tesseract-ocr"});
  EXPECT_TRUE(draft.run.empty());
  EXPECT_TRUE(tells(draft, "cuda-toolkit-12-4"));
}

TEST_F(PublicFilesTest, NightlyBuildsArePreReleases) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN pip install --pre torch torchaudio -i "
      "https://wheels.example/whl/nightly/cu130\n");
  EXPECT_EQ(draft.framework, "pytorch>=0.dev0");
  EXPECT_EQ(draft.packages, Strings{"torchaudio>=0.dev0"});
  EXPECT_TRUE(draft.notes.empty());
}

TEST_F(PublicFilesTest, ToolsByTheirModulesAndTheirSettings) {
  const Draft draft = of_docker(
      "FROM python:3.11-slim\nRUN $HOME/.local/bin/poetry config a b && $TOOLS/poetry config a b\n"
      "RUN pipx ensurepath && python3 -m poetry add idna && python -m uv pip install six\n");
  EXPECT_EQ(draft.packages, (Strings{"idna", "six"}));
  EXPECT_TRUE(draft.run.empty());
  EXPECT_TRUE(tells(draft, "not needed"));
}

TEST_F(PublicFilesTest, WhatAPathAddsIsTold) {
  const Draft told = of_docker(
      "FROM python:3.11\nENV PATH=/usr/local/tool/bin:$PATH\nRUN pip install six "
      "--no-build-isolation\n");
  EXPECT_TRUE(tells(told, "the image has its own PATH"));
  EXPECT_TRUE(tells(told, "build: {requires: {NAME: [torch]}}"));
  const Draft usual = of_docker(
      "FROM python:3.11\nENV PATH=\"/opt/venv/bin:/usr/local/cuda/bin:/usr/local/bin:${PATH}\"\n"
      "RUN pip install six\n");
  EXPECT_FALSE(tells(usual, "the image has its own PATH"));
}

TEST_F(PublicFilesTest, MimInstallsAsPipDoes) {
  put("a.ipynb",
      R"({"cells": [{"cell_type": "code", "source": ["!mim install mmcv==2.1.0 mmdet"]}],)"
      R"( "metadata": {}, "nbformat": 4, "nbformat_minor": 4})");
  EXPECT_EQ(of("a.ipynb").packages, (Strings{"mmcv==2.1.0", "mmdet", "ipykernel"}));
}

TEST_F(PublicFilesTest, CudaThatNoWheelBringsIsTold) {
  EXPECT_TRUE(tells(of_docker("FROM tensorflow/tensorflow:1.5.0-gpu-py3\nRUN pip install six\n"),
                    "its CUDA, which no wheels bring for this TensorFlow"));
  put("environment.yml", "dependencies:\n  - pytorch-cuda=11.7\n  - cuda-nvcc=11.7\n  - pytorch\n");
  EXPECT_TRUE(tells(of("environment.yml"), "packages of CUDA 12 and 11 bring none"));
}

}  // namespace
}  // namespace mlenv
