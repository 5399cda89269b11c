// Commands of builds: what they install, where from, and what is left for a step.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/init/listed_words.hpp"
#include "tests/support/error_code.hpp"
#include "tests/unit/recipes/init/conversion_test.hpp"

namespace mlenv {
namespace {

class BuildCommandsTest : public ConversionTest {};

TEST_F(BuildCommandsTest, AnIndexOfOneCommandIsThatOfItsPackages) {
  const std::string wheels = "https://wheels.example/whl/";
  Draft draft = of_docker(
      "FROM debian:12\nRUN pip install six\nRUN pip install torch==2.5.1 "
      "torchvision --index-url " +
      wheels + "cu121\n");
  EXPECT_EQ(draft.index, (std::vector<DraftIndex>{{"torch", wheels + "cu121"},
                                                  {"torchvision", wheels + "cu121"}}));
  EXPECT_EQ(draft.cuda, "12");
  EXPECT_TRUE(draft.indexes.empty());
  draft = of_docker("FROM nvidia/cuda:12.1.0-base-ubuntu22.04\nRUN pip install torch -i " + wheels +
                    "cpu\n");
  EXPECT_EQ(draft.cuda, "cpu");
  draft = of_docker("FROM debian:12\nRUN pip install torch --index-url=" + wheels + "rocm6.0\n");
  EXPECT_EQ(draft.cuda, "");
  EXPECT_EQ(draft.index.size(), 1U);
  // Beside the default one: the release alone.
  draft =
      of_docker("FROM debian:12\nRUN pip install torch --extra-index-url " + wheels + "cu118\n");
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_TRUE(draft.index.empty());
  EXPECT_TRUE(tells(draft, "cu118"));
  put("requirements.txt", "--extra-index-url " + wheels + "cpu\njax[cuda12]\n");
  EXPECT_EQ(of("requirements.txt").cuda, "12");
}

TEST_F(BuildCommandsTest, AMirrorIsEverybodysAndAnOwnIndexIsNot) {
  put("requirements.txt", "six\n");
  const Strings mirror = {"https://mirror.example/simple"};
  EXPECT_EQ(of_docker("FROM debian:12\nRUN pip install -i " + mirror[0] + " six tqdm\n").indexes,
            mirror);
  EXPECT_EQ(
      of_docker("FROM debian:12\nRUN pip install idna\nRUN pip install -r requirements.txt -i " +
                mirror[0] + "\n")
          .indexes,
      mirror);
  const Draft own =
      of_docker("FROM debian:12\nRUN pip install six\nRUN pip install -i " + mirror[0] + " mine\n");
  EXPECT_TRUE(own.indexes.empty());
  EXPECT_EQ(own.index, (std::vector<DraftIndex>{{"mine", mirror[0]}}));
  EXPECT_TRUE(of_docker("FROM debian:12\nRUN pip install -i https://u:p@h.example/simple mine\n")
                  .index.empty());
}

TEST_F(BuildCommandsTest, AnIndexOfBuildsInAFileIsPytorchs) {
  put("requirements.txt", "--index-url https://wheels.example/whl/cu118\ntorch\ntorchaudio\nsix\n");
  const Draft draft = of("requirements.txt");
  EXPECT_EQ(draft.index,
            (std::vector<DraftIndex>{{"torch", "https://wheels.example/whl/cu118"},
                                     {"torchaudio", "https://wheels.example/whl/cu118"}}));
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_TRUE(draft.indexes.empty());
}

TEST_F(BuildCommandsTest, PagesOfFilesAreThoseOfTheirPackages) {
  const std::string page = "https://wheels.example/dist/cu117/torch2.0.0/index.html";
  const Draft draft =
      of_docker("FROM debian:12\nRUN pip install torch==2.0.0\nRUN pip install mmcv==2.0.0 -f " +
                page + "\n");
  EXPECT_EQ(draft.index, (std::vector<DraftIndex>{{"mmcv", page, true}}));
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_TRUE(of_docker("FROM debian:12\nRUN pip install torch==1.12.1+cu113 -f "
                        "https://wheels.example/whl/torch_stable.html\n")
                  .index.empty());
}

TEST_F(BuildCommandsTest, OptionsOfPipWithTheirValues) {
  put("pyproject.toml",
      "[project]\nname = \"p\"\nversion = \"1\"\ndependencies = [\"six\"]\n"
      "[project.optional-dependencies]\ngpu = [\"idna\"]\n");
  const Draft draft = of_docker(
      "FROM debian:12\nCOPY . .\nRUN pip install -Uq --target /x --proxy p tqdm -c c.txt\n"
      "RUN uv pip install --system -r pyproject.toml --extra gpu\nRUN pip --version\n");
  EXPECT_EQ(draft.packages, Strings{"tqdm"});
  EXPECT_EQ(draft.requirements, (std::vector{DraftRequirements{"pyproject.toml", {"gpu"}}}));
  EXPECT_TRUE(tells(draft, "--target /x"));
  EXPECT_TRUE(tells(draft, "-c c.txt"));
}

TEST_F(BuildCommandsTest, ListsInFilesAreRead) {
  put("apt.txt", "# for clones\ngit\nlibgl1\n");
  put("requirements.txt", "six\n# no\nidna\n");
  for (const char* command :
       {"xargs apt-get install -y <apt.txt", "xargs -a apt.txt apt-get install -y",
        "cat apt.txt | xargs -r apt-get install -y", "apt-get install -y $(cat apt.txt)",
        "apt-get install -y $(grep -v '#' apt.txt | tr '\\n' ' ') > /dev/null",
        "grep -vE '^#' apt.txt | sed 's/ //' | xargs sudo apt-get install",
        "apt-get install `cat apt.txt`"}) {
    const Draft draft = of_docker(std::string("FROM debian:12\nRUN ") + command + "\n");
    EXPECT_EQ(draft.system, (Strings{"git", "libgl1"})) << command;
    EXPECT_TRUE(draft.run.empty()) << command;
  }
  EXPECT_EQ(
      of_docker("FROM debian:12\nRUN cat requirements.txt | xargs -n 1 pip install\n").packages,
      (Strings{"six", "idna"}));
  EXPECT_TRUE(of_docker("FROM debian:12\nRUN xargs apt-get install < no.txt\n").system.empty());
  EXPECT_EQ(words_of_list("a b # c\n\n\td\r\n"), (Strings{"a", "b", "d"}));
}

TEST_F(BuildCommandsTest, ListsThatAPipeMakesAreWhatItLeaves) {
  put("requirements.txt", "torch==2.3.1\nsix\nidna ; python_version > '3'\n");
  put("apt.txt", "git\nless\n");
  put("more.txt", "tqdm\n");
  for (const char* command : {"grep -v torch requirements.txt | xargs pip install",
                              "cat requirements.txt | grep -v torch | xargs -I{} pip install {}",
                              "pip install $(sed '/^torch/d' requirements.txt)",
                              "pip install -r <(grep -v torch requirements.txt)"}) {
    const Draft draft = of_docker(std::string("FROM debian:12\nRUN ") + command + "\n");
    EXPECT_EQ(draft.packages, (Strings{"six", "idna ; python_version > '3'"})) << command;
    EXPECT_EQ(draft.framework, "") << command;
    EXPECT_TRUE(draft.run.empty()) << command;
    ASSERT_EQ(draft.notes.size(), 1U) << command;
    EXPECT_EQ(draft.notes.front().why, "the list is read as this leaves it") << command;
  }
  EXPECT_EQ(
      of_docker("FROM debian:12\nRUN grep -v git apt.txt | xargs apt-get install -y\n").system,
      Strings{"less"});
  EXPECT_EQ(of_docker("FROM debian:12\nRUN echo six idna | xargs pip install\n").packages,
            (Strings{"six", "idna"}));
  EXPECT_EQ(of_docker("FROM debian:12\nRUN cat more.txt apt.txt | xargs pip install\n").packages,
            (Strings{"tqdm", "git", "less"}));
  put("lab/requirements.txt", "numpy\nidna\n");
  EXPECT_EQ(of_docker("FROM debian:12\nRUN sed -i /^idna/d requirements.txt && grep -v torch "
                      "requirements.txt | xargs pip install\n")
                .packages,
            Strings{"six"})
      << "as the command before leaves it";
  EXPECT_EQ(of_docker("FROM debian:12\nCOPY lab /lab\nRUN cd /lab && grep -v numpy "
                      "requirements.txt | xargs pip install\n")
                .packages,
            Strings{"idna"})
      << "from the folder that cd leads to";
  const Draft unknown =
      of_docker("FROM debian:12\nRUN awk '{print $1}' more.txt | xargs pip install\n");
  EXPECT_EQ(unknown.packages, Strings{"tqdm"});
  ASSERT_EQ(unknown.notes.size(), 1U);
  EXPECT_NE(unknown.notes.front().why.find("all of the list is taken"), std::string::npos);
}

TEST_F(BuildCommandsTest, NodeOfItsMakersIsDebians) {
  for (const char* command :
       {"curl -fsSL https://deb.host.example/setup_20.x | bash - && apt-get install -y nodejs rare",
        "curl -sL https://host.example/setup_20.x | sudo -E bash - && apt install nodejs rare",
        "curl -o s.sh https://host.example/setup_20.x && apt-get install -y nodejs rare",
        "curl https://h.example/nodesource.gpg.key | gpg --dearmor -o /etc/apt/keyrings/n.gpg && "
        "echo \"deb https://nodesource.example/node_20.x main\" | tee "
        "/etc/apt/sources.list.d/nodesource.list && apt-get install -y nodejs rare"}) {
    const Draft draft = of_docker(std::string("FROM debian:12\nRUN ") + command + "\n");
    EXPECT_EQ(draft.system, (Strings{"nodejs", "rare"})) << command;
    EXPECT_TRUE(draft.run.empty()) << command;
    ASSERT_EQ(draft.notes.size(), 1U) << command;
    EXPECT_NE(draft.notes.front().why.find("Node.js 20 is `nodejs`"), std::string::npos);
    EXPECT_FALSE(tells(draft, "a pipe or a choice")) << command;
  }
}

TEST_F(BuildCommandsTest, ACloneBySshOfTheProjectIsThisFolder) {
  put(".git/config", "[remote \"origin\"]\n\turl = git@host.example:lab/tool.git\n");
  put("pyproject.toml",
      "[project]\nname = \"tool\"\nversion = \"1\"\ndependencies = [\"six\"]\n[build-system]\n"
      "requires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n");
  put("docker/Dockerfile",
      "FROM debian:12\nRUN mkdir -p ~/.ssh && ssh-keyscan host.example >> ~/.ssh/known_hosts\n"
      "RUN git clone git@host.example:lab/tool.git /opt/tool && cd /opt/tool && poetry install\n");
  const auto converted = [&] {
    return convert(folder_.path() / "docker/Dockerfile", folder_.path());
  };
  Draft draft = converted();
  EXPECT_EQ(draft.packages, Strings{"tool @ ."});
  EXPECT_EQ(draft.files, (std::vector<std::pair<std::string, std::string>>{{".", "/opt/tool"}}));
  EXPECT_TRUE(draft.run.empty());
  EXPECT_EQ(draft.notes.size(), 1U);
  put("docker/Dockerfile",
      "FROM debian:12\nWORKDIR /opt\nRUN git clone ssh://git@host.example/lab/tool\n"
      "WORKDIR /opt/tool\nRUN pip install .\n");
  draft = converted();
  EXPECT_EQ(draft.packages, Strings{"tool @ ."});
  EXPECT_TRUE(draft.run.empty());
  put("docker/Dockerfile",
      "FROM debian:12\nRUN git clone git@host.example:lab/other.git /opt/other\n"
      "WORKDIR /opt/other\nRUN pip install .\nRUN make\n");
  draft = converted();
  EXPECT_EQ(draft.packages, Strings{"other @ git+ssh://git@host.example/lab/other.git"});
  EXPECT_TRUE(draft.run.empty()) << "no step has a key";
  EXPECT_TRUE(tells(draft, "git clone git@host.example:lab/other.git"));
  EXPECT_TRUE(tells(draft, "make"));
}

TEST_F(BuildCommandsTest, GroupsAreStepsWithoutTheirInstalls) {
  const Draft draft = of_docker(
      "FROM debian:12\nWORKDIR /w\nRUN (cd a && protoc *.proto --python_out=.)\n"
      "RUN (cd b && pip install six && make) && (cd c && pip install idna)\n"
      "RUN (curl https://h.example/x | sh)\n");
  EXPECT_EQ(steps(draft), (Strings{"(cd a && protoc *.proto --python_out=.)", "(cd b && make)"}));
  EXPECT_EQ(draft.packages, (Strings{"six", "idna"}));
  EXPECT_TRUE(tells(draft, "curl https://h.example/x"));
}

TEST_F(BuildCommandsTest, UsersOfTheImageAreToldAndNotMade) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN groupadd -g 9 app && useradd -m -g app app && mkdir /home/app/x\n"
      "WORKDIR /w\nRUN chown -R app:app /w\nRUN mkdir d; chown app d\nRUN fix-permissions /opt\n"
      "RUN touch /home/app/y\nUSER app\n");
  EXPECT_EQ(steps(draft), (Strings{"cd /\nmkdir -p /home/app\nmkdir -p /home/app/x", "mkdir -p d",
                                   "mkdir -p /home/app\ntouch /home/app/y"}));
  EXPECT_TRUE(tells(draft, "useradd -m -g app app"));
  EXPECT_TRUE(tells(draft, "chown -R app:app /w"));
}

TEST_F(BuildCommandsTest, PackagesOfOtherMakersAreTold) {
  const Draft draft = of_docker(
      "FROM ubuntu:22.04\nRUN apt-get install -y git libcudnn8 cuda-toolkit-12-1 docker-ce-cli\n"
      "RUN echo 'deb https://h.example stable main' > /etc/apt/sources.list.d/a.list && apt-get "
      "install -y strange-tool curl libfoo1\n");
  EXPECT_EQ(draft.system, (Strings{"git", "curl", "libfoo1"}));
  EXPECT_TRUE(tells(draft, "libcudnn8, cuda-toolkit-12-1"));
  EXPECT_TRUE(tells(draft, "docker-ce-cli, strange-tool"));
}

TEST_F(BuildCommandsTest, APythonBesideTheDistributionsIsTheRecipes) {
  Draft draft = of_docker(
      "FROM ubuntu:22.04\nRUN add-apt-repository ppa:deadsnakes/ppa && apt-get install -y "
      "python3.9 python3.9-dev python3.9-venv\nRUN python3.9 -m pip install six\n");
  EXPECT_EQ(draft.python, "3.9");
  EXPECT_EQ(draft.base, "debian:bullseye");
  EXPECT_EQ(draft.system, Strings{"python3-dev"});
  draft = of_docker("FROM ubuntu:22.04\nRUN apt-get install -y python3.10\n");
  EXPECT_EQ(draft.base, "ubuntu:jammy");
}

TEST_F(BuildCommandsTest, ACudaThatNoBuildIsForIsTheImagesAlone) {
  const auto cuda = [&](const std::string& image, const std::string& package) {
    return of_docker("FROM nvidia/cuda:" + image + "\nRUN pip install '" + package + "'\n").cuda;
  };
  EXPECT_EQ(cuda("12.0.1-base-ubuntu22.04", "torch~=1.8"), "");
  EXPECT_EQ(cuda("12.0.1-base-ubuntu22.04", "torch>=1.8"), "12");
  EXPECT_EQ(cuda("11.8.0-base-ubuntu22.04", "torch==2.9.0"), "");
  EXPECT_EQ(cuda("11.8.0-base-ubuntu22.04", "torch==2.0.1"), "11");
  EXPECT_EQ(cuda("12.2.0-base-ubuntu22.04", "tensorflow==2.12.*"), "");
  EXPECT_EQ(cuda("11.2.2-base-ubuntu22.04", "jax==0.4.30"), "");
}

TEST_F(BuildCommandsTest, TensorflowsImagesAreOfTheirCuda) {
  const auto cuda = [&](const std::string& tag) {
    return of_docker("FROM tensorflow/tensorflow:" + tag + "\n").cuda;
  };
  EXPECT_EQ(cuda("2.12.0-gpu"), "11");
  EXPECT_EQ(cuda("2.15.0-gpu-jupyter"), "12");
  EXPECT_EQ(cuda("latest-gpu"), "12");
  EXPECT_EQ(cuda("1.15.5-gpu"), "");
}

TEST_F(BuildCommandsTest, CondasFilesInRunHaveCondasNames) {
  put("list.txt", "numpy>=1.2  # here\npytorch\nno-such-name-of-conda\n");
  const Draft draft =
      of_docker("FROM jupyter/base-notebook:python-3.11\nRUN mamba install -y --file list.txt\n");
  EXPECT_EQ(draft.framework, "pytorch");
  EXPECT_TRUE(tells(draft, "no-such-name-of-conda"));
}

TEST_F(BuildCommandsTest, ExtrasOfPoetrysLock) {
  put("pyproject.toml", "[tool.poetry]\nname = \"lab\"\n[tool.poetry.extras]\ntls = [\"a\"]\n");
  put("poetry.lock",
      "[[package]]\nname = \"a\"\nversion = \"1\"\noptional = true\nmarkers = \"extra == "
      "'tls'\"\n[package.dependencies]\nb = \"*\"\n[[package]]\nname = \"b\"\nversion = \"2\"\n"
      "optional = true\n[[package]]\nname = \"c\"\nversion = \"3\"\noptional = true\n[[package]]\n"
      "name = \"d\"\nversion = \"4\"\noptional = false\n[extras]\nTLS = [\"a (>=1)\"]\n"
      "all = [\"c\"]\n");
  const auto packages = [&](const std::string& options) {
    return of_docker("FROM python:3.11\nRUN poetry install --no-root " + options + "\n").packages;
  };
  EXPECT_EQ(packages(""), Strings{"d==4"});
  EXPECT_EQ(packages("-E tls"), (Strings{"a==1", "b==2", "d==4"}));
  EXPECT_EQ(packages("--all-extras"), (Strings{"a==1", "b==2", "d==4"}));
}

TEST_F(BuildCommandsTest, DevcontainersBuildTheirDockerfile) {
  put("requirements.txt", "six\n");
  put(".devcontainer/Dockerfile",
      "ARG VARIANT=3.11\nFROM mcr.microsoft.com/devcontainers/python:1-${VARIANT}\n"
      "COPY requirements.txt /tmp/\nRUN pip install -r /tmp/requirements.txt\n");
  put(".devcontainer/devcontainer.json",
      R"({"build": {"dockerfile": "Dockerfile", "context": "..", "args": {"VARIANT": "3.13"}}})");
  Draft draft = of(".devcontainer/devcontainer.json");
  EXPECT_EQ(draft.python, "3.13");
  EXPECT_EQ(draft.packages, Strings{"six"});
  for (const auto& [image, base] :
       std::vector<std::pair<std::string, std::string>>{{"base:ubuntu-20.04", "ubuntu:focal"},
                                                        {"base:1-debian-12", "debian:bookworm"},
                                                        {"base:ubuntu", "ubuntu:jammy"},
                                                        {"base:0-jammy", "ubuntu:jammy"},
                                                        {"miniconda:0-3", ""}}) {
    put("devcontainer.json", R"({"image": "mcr.microsoft.com/devcontainers/)" + image + "\"}");
    EXPECT_EQ(of("devcontainer.json").base, base) << image;
  }
}

TEST_F(BuildCommandsTest, OfTwoCellsTheLaterOneCounts) {
  put("a.ipynb",
      R"({"cells": [{"cell_type": "code", "source": ["!pip install a==1 b[x]==1 torch\n",
      "!apt-get install -qq jq > /dev/null\n"]}, {"cell_type": "code", "source":
      "%pip install a==2 b==2 torch==2.1.0"}]})");
  const Draft draft = of("a.ipynb");
  EXPECT_EQ(draft.packages, (Strings{"a==2", "b[x]==2", "ipykernel"}));
  EXPECT_EQ(draft.framework, "pytorch==2.1.0");
  EXPECT_EQ(draft.system, Strings{"jq"});
}

TEST_F(BuildCommandsTest, SpacesByTheirReadme) {
  put("space/README.md",
      "---\nsdk: gradio\nsdk_version: \"5.1\"\npython_version: 3.11\n---\n# A\n");
  put("space/app.py", "");
  put("space/pre-requirements.txt", "six\n");
  put("space/packages.txt", "ffmpeg\n");
  for (const char* name : {"space", "space/README.md"}) {
    const Draft draft = of(name);
    EXPECT_EQ(draft.packages, (Strings{"gradio==5.1", "six"})) << name;
    EXPECT_EQ(draft.system, Strings{"ffmpeg"});
    EXPECT_EQ(draft.command, (Strings{"python", "app.py"}));
    EXPECT_EQ(draft.python, "3.11");
  }
  put("README.md", "# A project\n");
  EXPECT_EQ(code_of([&] { of("README.md"); }), "source-invalid");
}

TEST_F(BuildCommandsTest, BindersScriptsAreTold) {
  put("binder/requirements.txt", "six\n");
  put("binder/postBuild", "#!/bin/bash\nset -e\npip install idna\njupyter lab build\n");
  put("binder/start", "exec \"$@\"\n");
  const Draft draft = of(".");
  EXPECT_EQ(draft.packages, (Strings{"six", "idna"}));
  EXPECT_TRUE(tells(draft, "jupyter lab build"));
  EXPECT_TRUE(tells(draft, "start"));
  EXPECT_TRUE(draft.run.empty());
}

TEST_F(BuildCommandsTest, WhatIsKnownOfAnInstallIsTaken) {
  const Draft draft = of_docker(
      "FROM nvidia/cuda:11.8.0-base-ubuntu22.04\nRUN V=$(echo 118) && pip install "
      "torch==2.1.2+cu${V} torchvision==0.16.2+cu${V} --extra-index-url "
      "https://wheels.example/whl/cu${V}\nRUN pip install \"six==$X\"\n");
  EXPECT_EQ(draft.framework, "pytorch==2.1.2");
  EXPECT_EQ(draft.packages, Strings{"torchvision==0.16.2"});
  EXPECT_EQ(draft.cuda, "11");
  EXPECT_TRUE(draft.run.empty());
  EXPECT_TRUE(tells(draft, "six==$X"));
}

TEST_F(BuildCommandsTest, AShellWithinAShell) {
  put("a.txt", "six\n");
  put("b.txt", "idna\n");
  EXPECT_EQ(of_docker("FROM debian:12\nRUN [\"/bin/bash\", \"-c\", \"pip install -r <(cat a.txt "
                      "b.txt)\"]\n")
                .packages,
            (Strings{"six", "idna"}));
  EXPECT_EQ(of_docker("FROM debian:12\nRUN bash -lc 'pip install tqdm'\n").packages,
            Strings{"tqdm"});
}

TEST_F(BuildCommandsTest, WhatIsOfAnotherPythonIsTold) {
  const Draft draft = of_docker(
      "FROM ubuntu:20.04\nRUN update-alternatives --install /usr/bin/python3 python3 "
      "/usr/bin/python3.8 1\nRUN ln -s /usr/bin/python3 /usr/bin/python\nRUN chsh -s /bin/bash\n"
      "RUN echo 'source activate x' > ~/.bashrc\nRUN rm /opt/conda/bin/ffmpeg && touch /x\n"
      "RUN ln -s /a /b\n");
  EXPECT_EQ(steps(draft), (Strings{"cd /\ntouch /x", "cd /\nln -s /a /b"}));
  EXPECT_TRUE(tells(draft, "/opt/conda/bin/ffmpeg"));
  // What an image has, stays.
  EXPECT_EQ(of_docker("FROM host.example/x:1\nRUN rm /opt/conda/bin/ffmpeg\n").run.size(), 1U);
}

TEST_F(BuildCommandsTest, AnEnvironmentByWhatMadeIt) {
  put("requirements.txt", "six\n");
  EXPECT_EQ(
      of_docker("FROM python:3.11 AS b\nRUN python -m venv /build\nRUN /build/bin/pip install "
                "-r requirements.txt\nFROM python:3.11-slim\nCOPY --from=b /build /build\n")
          .packages,
      Strings{"six"});
}

TEST_F(BuildCommandsTest, NodesPackageManagerIsDebiansApart) {
  const Draft draft =
      of_docker("FROM debian:12\nRUN apt-get install -y nodejs\nRUN cd web && npm ci\n");
  EXPECT_EQ(draft.system, (Strings{"nodejs", "npm"}));
}

TEST_F(BuildCommandsTest, APinnedFrameworkSaysThePython) {
  const auto python = [&](const std::string& line) {
    put("requirements.txt", line + "\n");
    return of("requirements.txt").python;
  };
  EXPECT_EQ(python("torch==1.10.0"), "3.9");
  EXPECT_EQ(python("torch==1.12.1"), "3.10");
  EXPECT_EQ(python("torch==2.1.0"), "");
  EXPECT_EQ(python("tensorflow<2.5"), "3.8");
  EXPECT_EQ(python("torch>=1.8"), "");
}

TEST_F(BuildCommandsTest, AServiceOfCompose) {
  put("app/Dockerfile",
      "ARG V=3.11\nFROM python:${V}-slim\nCOPY r.txt .\nRUN pip install -r r.txt\n");
  put("app/r.txt", "six\n");
  put("compose.yml",
      "services:\n  db: {image: 'postgres:15'}\n  app:\n    build:\n      context: app\n      "
      "args: "
      "[V=3.13]\n    environment: {A: b, C: \"${D}\"}\n    ports: ['1:1']\n");
  put("devcontainer.json", R"({"dockerComposeFile": ["compose.yml"], "service": "app"})");
  Draft draft = of("devcontainer.json");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(draft.python, "3.13");
  EXPECT_EQ(draft.env, (std::vector<std::pair<std::string, std::string>>{{"A", "b"}}));
  EXPECT_TRUE(tells(draft, "ports"));
  put("devcontainer.json", R"({"dockerComposeFile": "compose.yml", "service": "no"})");
  EXPECT_TRUE(tells(of("devcontainer.json"), "there is no such service"));
  put("devcontainer.json", R"({"dockerComposeFile": "none.yml", "service": "no"})");
  EXPECT_TRUE(tells(of("devcontainer.json"), "there is no such file"));
}

TEST_F(BuildCommandsTest, VariablesOfCells) {
  put("a.ipynb",
      R"({"cells": [{"cell_type": "code", "source": "B = 'v1'\nC = \"2\" + x\n!pip install )"
      R"(a@git+https://h.example/a@$B b=={C}\n!pip install d=={B}"}]})");
  const Draft draft = of("a.ipynb");
  EXPECT_EQ(draft.packages.front(), "a @ git+https://h.example/a@v1");
  EXPECT_TRUE(tells(draft, "b=={C}"));
}

TEST_F(BuildCommandsTest, BinderWithAScriptAlone) {
  put(".binder/postBuild", "pip install six\n");
  EXPECT_EQ(of(".").packages, Strings{"six"});
}

TEST_F(BuildCommandsTest, ConditionsOfArgumentsAreDecided) {
  const std::string docker =
      "FROM h.example/x:1\nARG EXTRA=\"\"\nARG GIVEN\nARG TARGETARCH\nRUN git clone "
      "https://git.example/a && cd a && git checkout v2 && if [ -n \"$EXTRA\" ]; then pip install "
      "-e "
      ".[$EXTRA]; else pip install -e .; fi\nRUN if [ $TARGETARCH = arm64 ]; then pip install b; "
      "fi; "
      "test -n \"$GIVEN\" && pip install c || echo none\nRUN if unknown; then pip install d; fi && "
      "pip "
      "install e\nRUN for m in x y; do python -m fetch $m; done\n";
  const Draft draft = of_docker(docker);
  EXPECT_EQ(draft.packages, (Strings{"a @ git+https://git.example/a@v2", "e"}));
  EXPECT_TRUE(tells(draft, "a script of the shell"));
  ASSERT_FALSE(steps(draft).empty());
  EXPECT_EQ(steps(draft).back(), "for m in x y; do python -m fetch $m; done");
  bool noted = false;
  for (const LeftOut& one : draft.notes) noted = noted || one.text == "[ -n \"$EXTRA\" ]";
  EXPECT_TRUE(noted);
}

TEST_F(BuildCommandsTest, ClonesAtTheCommitThatIsCheckedOut) {
  const auto package = [&](const std::string& commands) {
    return of_docker("FROM debian:12\nRUN git clone -b dev https://git.example/a /src/a\nRUN " +
                     commands + " && pip install /src/a\n")
        .packages.at(0);
  };
  const std::string address = "a @ git+https://git.example/a@";
  EXPECT_EQ(package("true"), address + "dev");
  EXPECT_EQ(package("cd /src/a && git checkout -q tags/v1"), address + "v1");
  EXPECT_EQ(package("git -C /src/a reset --hard 1a2b3c"), address + "1a2b3c");
  EXPECT_EQ(package("cd /src/a/b && git switch --detach origin/v3"), address + "v3");
  EXPECT_EQ(package("cd /src/a && git checkout -- x.py && git checkout . && git reset x"),
            address + "dev");
  EXPECT_EQ(package("cd /src && git checkout v1"), address + "dev");
  EXPECT_EQ(of_docker("FROM debian:12\nRUN git clone https://git.example/a && cd a && FORCE_CUDA=1 "
                      "python setup.py build develop\n")
                .packages,
            Strings{"a @ git+https://git.example/a"});
}

TEST_F(BuildCommandsTest, ConstraintsAndPrereleases) {
  put("c.txt", "numpy<2\n");
  put("server/setup.py", "from setuptools import setup\nsetup(name='served')\n");
  put("server/requirements.txt", "six\n");
  const Draft draft = of_docker(
      "FROM debian:12\nWORKDIR /app\nCOPY . .\nRUN pip install --pre -c /app/c.txt a==1.0rc1 "
      "b\nRUN cd "
      "server && pip install -r requirements.txt && pip install \".[x, y]\"\nRUN pip install -c "
      "gone.txt d\n");
  EXPECT_EQ(draft.constraints, Strings{"c.txt"});
  EXPECT_EQ(draft.packages, (Strings{"a==1.0rc1", "b", "six", "served[x,y] @ ./server", "d"}));
  EXPECT_TRUE(tells(draft, "-c gone.txt"));
  ASSERT_FALSE(draft.notes.empty());
  EXPECT_EQ(draft.notes.front().text, "pip install --pre b");
  EXPECT_EQ(of_docker("FROM debian:12\nRUN pip config set global.index-url "
                      "https://index.example/simple && pip install x\n")
                .indexes,
            Strings{"https://index.example/simple"});
}

TEST_F(BuildCommandsTest, FilesOfEarlierStepsInTmpAreGone) {
  const Draft draft = of_docker(
      "FROM debian:12\nRUN git clone https://git.example/a /tmp/a\nRUN cd /tmp/a && "
      "./install.sh\n");
  EXPECT_EQ(steps(draft).size(), 1U);
  EXPECT_TRUE(tells(draft, "gone when a step ends"));
  EXPECT_TRUE(
      of_docker("FROM debian:12\nRUN git clone https://git.example/a /tmp/a && cd /tmp/a && "
                "git checkout v1 && pip install .\n")
          .run.empty());
}

TEST_F(BuildCommandsTest, AStageThatIsWanted) {
  put(".devcontainer/devcontainer.json",
      "{\"build\": {\"dockerfile\": \"../Dockerfile\", \"context\": \"..\", \"target\": "
      "\"Dev\"}, \"workspaceFolder\": \"/w\", \"features\": {\"h.example/apt-packages:1\": "
      "{\"packages\": \"tmux,htop\"}}}");
  put("Dockerfile",
      "FROM debian:12 AS dev\nWORKDIR /a\nRUN pip install a\nFROM dev\nRUN pip install b\n");
  const Draft draft = of(".devcontainer/devcontainer.json");
  EXPECT_EQ(draft.packages, Strings{"a"});
  EXPECT_EQ(draft.workdir, "/w");
  EXPECT_EQ(draft.system, (Strings{"tmux", "htop"}));
}

TEST_F(BuildCommandsTest, ComposeInSeveralFilesWithAnchors) {
  put("compose.yml",
      "x-a: &a\n  environment: &e\n    A: one\nservices:\n  web:\n    <<: *a\n    image: "
      "python:3.11\n");
  put("more.yml", "services:\n  other: {image: redis}\n");
  put("devcontainer.json",
      "{\"dockerComposeFile\": [\"compose.yml\", \"more.yml\"], \"service\": \"web\"}");
  const Draft draft = of("devcontainer.json");
  EXPECT_EQ(draft.python, "3.11");
  ASSERT_EQ(draft.env.size(), 1U);
  EXPECT_EQ(draft.env.front().second, "one");
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before +
            ", " + before + ", " + before + ", " + before + "]\n";
  }
  put("compose.yml", bomb);
  EXPECT_THROW(of("devcontainer.json"), Error);
}

TEST_F(BuildCommandsTest, CellsOfBashAndExpressions) {
  const auto notebook = [&](const std::string& source) {
    put("n.ipynb", "{\"cells\": [{\"cell_type\": \"code\", \"source\": " + source + "}]}");
    return of("n.ipynb");
  };
  EXPECT_EQ(notebook("\"%%bash\\npip install \\\\\\n  a b\"").packages,
            (Strings{"a", "b", "ipykernel"}));
  const Draft draft = notebook(
      "\"!pip install {' '.join([f'{x}' for x in all])} c -f https://w.example/{v}/x.html\"");
  EXPECT_EQ(draft.packages, (Strings{"c", "ipykernel"}));
  EXPECT_TRUE(draft.index.empty());
  EXPECT_TRUE(tells(draft, "https://w.example/{v}/x.html"));
  EXPECT_TRUE(tells(notebook("\"import detectron2\""), "git+https://"));
}

}  // namespace
}  // namespace mlenv
