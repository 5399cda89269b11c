#include "recipes/init/convert.hpp"

#include <algorithm>
#include <map>
#include <random>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/recipe.hpp"
#include "tests/support/error_code.hpp"
#include "tests/support/rounds.hpp"
#include "tests/support/strings.hpp"

namespace mlenv {
namespace {

class ConvertTest : public testing::Test {
 protected:
  void put(const std::string& name, std::string_view text) const {
    make_folders((folder_.path() / name).parent_path());
    write_file(folder_.path() / name, text, false);
  }
  Draft converted(const std::string& name) const {
    return convert(folder_.path() / name, folder_.path());
  }
  Draft of_dockerfile(std::string_view text) const {
    put("Dockerfile", text);
    return converted("Dockerfile");
  }
  /// As it would be written, read back.
  static Recipe read_back(Draft draft) {
    if (draft.name.empty()) draft.name = "x";
    choose_for_host(draft, {"debian:bookworm", ""});
    const std::string text = render_draft(draft, "recipe.yaml");
    return parse_recipe(text, "recipe.yaml");
  }
  static Strings reasons(const Draft& draft) {
    Strings all;
    for (const LeftOut& one : draft.left_out) all.push_back(one.text);
    return all;
  }

  TemporaryFolder folder_{temporary_root()};
};

TEST_F(ConvertTest, BaseImagesSayWhatTheyHold) {
  struct Case {
    const char* image;
    const char* base;
    const char* python;
    const char* framework;
    const char* cuda;
    std::size_t left_out;
  };
  const std::string torch = "pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime";
  for (const Case& one :
       {Case{"debian:bookworm-slim", "debian:bookworm", "", "", "", 0},
        Case{"docker.io/library/debian:12.5", "debian:bookworm", "", "", "", 0},
        Case{"debian:trixie-20260101@sha256:00", "debian:trixie", "", "", "", 0},
        Case{"debian:latest", "", "", "", "", 1}, Case{"debian", "", "", "", "", 1},
        Case{"python:3.13", "", "3.13", "", "", 0},
        Case{"python:3.11-slim-bookworm", "debian:bookworm", "3.11", "", "", 0},
        Case{"python:3.13-bookworm", "", "3.13", "", "", 0},
        Case{"python:3.10-slim", "", "3.10", "", "", 0},
        Case{"python:3.7-slim", "", "3.9", "", "", 1}, Case{"python:3.11.9", "", "3.11", "", "", 1},
        Case{"ubuntu:22.04", "ubuntu:jammy", "", "", "", 0},
        Case{"ubuntu:noble-20260101", "ubuntu:noble", "", "", "", 0},
        Case{"ubuntu:18.04", "", "", "", "", 1},
        Case{"host:5000/team/base:v1", "host:5000/team/base:v1", "", "", "", 0},
        Case{"host.example/base@sha256:"
             "0123456789012345678901234567890123456789012345678901234567890123",
             "host.example/base@sha256:"
             "0123456789012345678901234567890123456789012345678901234567890123",
             "", "", "", 0},
        Case{"node:22", "", "", "", "", 1}, Case{"scratch", "", "", "", "", 1},
        Case{torch.c_str(), "", "", "pytorch==2.4.0", "12", 1},
        Case{"tensorflow/tensorflow:2.16.1-gpu", "", "", "tensorflow==2.16.1", "12", 1},
        // Nothing uses CUDA there.
        Case{"nvidia/cuda:12.4.1-cudnn-devel-ubuntu22.04", "ubuntu:jammy", "", "", "", 2}}) {
    const Draft draft = of_dockerfile(std::string("FROM ") + one.image + '\n');
    EXPECT_EQ(draft.base, one.base) << one.image;
    EXPECT_EQ(draft.python, one.python) << one.image;
    EXPECT_EQ(draft.framework, one.framework) << one.image;
    EXPECT_EQ(draft.cuda, one.cuda) << one.image;
    EXPECT_EQ(draft.left_out.size(), one.left_out) << one.image;
    EXPECT_NO_THROW(read_back(draft)) << one.image;
  }
}

TEST_F(ConvertTest, CopiesAsDockerWould) {
  put("src/a.py", "");
  put("conf/b.toml", "");
  put("c.txt", "");
  const Draft draft = of_dockerfile(
      "FROM debian:12\nWORKDIR /app\nCOPY src lib/\nCOPY conf/b.toml ./b2.toml\n"
      "COPY [\"c.txt\", \"/etc/\"]\nCOPY . .\nCOPY src/*.py /x/\nCOPY ../up /x\n"
      "COPY c.txt /tmp/\nCOPY c.txt /other/\nADD c.tar.gz /x\nCOPY $NO /x\n");
  EXPECT_EQ(draft.files,
            (std::vector<std::pair<std::string, std::string>>{{"src", "/app/lib"},
                                                              {"conf/b.toml", "/app/b2.toml"},
                                                              {"c.txt", "/etc/"},
                                                              {".", "/app"},
                                                              {"src/a.py", "/x/"}}));
  EXPECT_EQ(reasons(draft), (Strings{"COPY ../up /x", "COPY c.txt /other", "ADD c.tar.gz /x",
                                     "COPY $NO /x", "COPY c.txt /tmp"}));
  EXPECT_EQ(read_back(draft).files.size(), 5U);
}

TEST_F(ConvertTest, CommandsAreThoseThatTheImageWouldRun) {
  const auto command = [&](const std::string& text) {
    return of_dockerfile("FROM debian:12\nENV A=b\n" + text + '\n').command;
  };
  EXPECT_EQ(command("CMD [\"python\", \"a b.py\"]"), (Strings{"python", "a b.py"}));
  EXPECT_EQ(command("CMD python train.py --x 'y z'"),
            (Strings{"python", "train.py", "--x", "y z"}));
  EXPECT_EQ(command("CMD python a && b"), (Strings{"/bin/sh", "-c", "python a && b"}));
  EXPECT_EQ(command("CMD [\"b\"]\nENTRYPOINT [\"a\"]"), (Strings{"a", "b"}));
  EXPECT_EQ(command("ENTRYPOINT a\nCMD [\"b\"]"), (Strings{"a"}));
  EXPECT_EQ(command("CMD [\"a\"]\nCMD [\"b\"]"), (Strings{"b"}));
  EXPECT_EQ(command("CMD echo $HOME"), (Strings{"/bin/sh", "-c", "echo $HOME"}));
}

TEST_F(ConvertTest, InstallCommandsInTheirForms) {
  put("deps/req.txt", "six\n");
  const Draft draft = of_dockerfile(
      "FROM debian:12\nARG V=1.17\nCOPY deps /deps\n"
      "RUN apt-get -qq -o A=b install -y -t bookworm-backports curl && sudo apt install git\n"
      "RUN python3 -m pip --no-cache-dir install idna==$V -r /deps/req.txt --timeout 60\n"
      "RUN [\"pip3\", \"install\", \"attrs\"]\nRUN uv pip install --system 'tqdm>4'\n"
      "RUN pip install numpy>=1.2\nRUN pip install $UNKNOWN\n"
      "RUN if true; then pip install something; fi\nRUN if unknown; then pip install nothing; "
      "fi\nRUN pip install black || true\n"
      "RUN apt-get install -y libgl1:amd64 zstd/bookworm-backports 'tar=1.34*'\n");
  EXPECT_EQ(draft.system, (Strings{"curl/bookworm-backports", "git", "libgl1:amd64",
                                   "zstd/bookworm-backports", "tar"}));
  EXPECT_EQ(draft.packages,
            (Strings{"idna==1.17", "six", "attrs", "tqdm>4", "numpy>=1.2", "something", "black"}));
  EXPECT_EQ(reasons(draft),
            (Strings{"pip install $UNKNOWN", "if unknown; then pip install nothing; fi"}));
  EXPECT_EQ(read_back(draft).system.size(), 5U);
}

TEST_F(ConvertTest, WordsBeforeACommandAndAptsReleaseInAllForms) {
  const Draft draft = of_dockerfile(
      "FROM debian:12\n"
      "RUN sudo -H -u app pip install six && sudo -uapp --preserve-env=A env -i B=c pip install "
      "idna\n"
      "RUN sudo --user=root -- apt-get install -tbookworm-backports -y git\n"
      "RUN apt-get -yqt bookworm-backports install curl wine:i386\n"
      "RUN apt-get install --target-release=bookworm-backports zstd\n"
      "RUN sudo -E -u root make -C /x 'a  b' && sudo -n touch /y\nRUN sudo -u app touch /z\n");
  EXPECT_EQ(draft.packages, (Strings{"six", "idna"}));
  EXPECT_EQ(draft.system, (Strings{"git/bookworm-backports", "curl/bookworm-backports",
                                   "wine/bookworm-backports", "zstd/bookworm-backports", "make"}));
  const std::vector<RunStep> steps = read_back(draft).run;
  ASSERT_EQ(steps.size(), 1U);
  EXPECT_EQ(steps[0].command.text, "cd /\nmake -C /x 'a  b'\ntouch /y");
  EXPECT_EQ(reasons(draft), (Strings{"wine:i386", "sudo -u app touch /z"}));
}

TEST_F(ConvertTest, SudoIsFoundBehindOtherWordsToo) {
  const Draft draft = of_dockerfile(
      "FROM debian:12\n"
      "RUN env FOO=1 sudo -u app make -C /x\n"
      "RUN A='b  c' env -u D sudo -E -p 'x y' make -C /x 'a  b'\n"
      "RUN exec sudo touch /y\n");
  const std::vector<RunStep> steps = read_back(draft).run;
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].command.text, "cd /\nA='b  c' env -u D make -C /x 'a  b'");
  EXPECT_EQ(steps[1].command.text, "cd /\nexec touch /y");
  EXPECT_EQ(reasons(draft), (Strings{"env FOO=1 sudo -u app make -C /x"}));
}

TEST_F(ConvertTest, OrdinaryCommandsBecomeSteps) {
  const Draft draft = of_dockerfile(
      "FROM debian:12\nARG WHO=\"the bob\"\nENV A=b\nRUN useradd -m x\nWORKDIR /app\n"
      "RUN apt-get update && cd ext && make CFLAGS=\"-O2 $A\" && sudo make install > /log\n"
      "RUN echo $WHO-$WHOLE > /etc/who\nRUN [\"touch\", \"a b\", \"it's\"]\n"
      "RUN git clone https://host.example/tool /opt/tool\n"
      "RUN --mount=type=secret,id=netrc --mount=type=cache,target=/c fetch\n"
      "WORKDIR /work\nRUN <<E\npip install six\n./configure\nmake\nE\n");
  const std::vector<RunStep> steps = read_back(draft).run;
  Strings texts;
  for (const RunStep& step : steps) texts.push_back(step.command.text);
  const std::string app = "mkdir -p /app && cd /app\n";
  EXPECT_EQ(texts, (Strings{app + "cd ext\nmake CFLAGS=\"-O2 $A\"\nmake install > /log",
                            app + "WHO='the bob'\necho $WHO-$WHOLE > /etc/who",
                            app + "touch 'a b' 'it'\\''s'",
                            app + "git clone https://host.example/tool /opt/tool", app + "fetch",
                            "./configure\nmake"}));
  ASSERT_EQ(steps.size(), 6U);
  EXPECT_TRUE(steps[3].network);
  EXPECT_FALSE(steps[2].network);
  EXPECT_EQ(steps[4].secrets, Strings{"netrc"});
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(reasons(draft),
            (Strings{"useradd -m x", "apt-get update", "RUN --mount=type=cache,target=/c"}));
}

TEST_F(ConvertTest, WhatIsNoOrdinaryCommandBecomesNoStep) {
  const Draft draft = of_dockerfile(
      "FROM host.example/base:1\nRUN curl -s https://host.example/x | sh && make\n"
      "RUN --mount=type=ssh git clone a\n"
      "RUN apt-get remove -y git\nRUN apt-get install -y git\nRUN uv sync\nRUN for a in b; do c; "
      "done | d\n");
  EXPECT_TRUE(draft.run.empty());
  EXPECT_EQ(draft.base, "host.example/base:1");
  EXPECT_EQ(draft.system, Strings{"git"});
  EXPECT_EQ(reasons(draft), (Strings{"curl -s https://host.example/x", "sh", "RUN --mount=type=ssh",
                                     "apt-get remove -y git", "uv sync",
                                     "for a in b; do c; done | d", "make", "git clone a"}));
  EXPECT_NO_THROW(read_back(draft));
}

TEST_F(ConvertTest, AFileWithHashesOrConstraintsIsNamedItself) {
  const std::string hash = " --hash=sha256:" + std::string(64, '1');
  put("sub/req.txt", "six==1.17" + hash + "\n");
  Draft draft =
      of_dockerfile("FROM python:3.11\nCOPY sub/req.txt /r.txt\nRUN pip install -r /r.txt\n");
  EXPECT_EQ(draft.requirements, std::vector{DraftRequirements{"sub/req.txt"}});
  EXPECT_TRUE(draft.packages.empty());
  EXPECT_TRUE(draft.left_out.empty());
  put("c.txt", "six<2\n");
  put("requirements.txt", "-c c.txt\ntorch\nsix\n");
  draft = converted("requirements.txt");
  EXPECT_EQ(draft.requirements, std::vector{DraftRequirements{"requirements.txt"}});
  // With what `requirements` refuses, line by line.
  put("requirements.txt", "-c c.txt\n--require-hashes\n-e .\nsix==1.17" + hash + "\n");
  draft = converted("requirements.txt");
  EXPECT_TRUE(draft.requirements.empty());
  EXPECT_EQ(draft.packages, Strings{"six==1.17"});
  EXPECT_EQ(draft.left_out.size(), 4U);
}

TEST_F(ConvertTest, AStageThatTheLastOneBeginsWithCounts) {
  const Draft draft = of_dockerfile(
      "ARG B=base\nFROM python:3.11 AS base\nENV A=1\nRUN pip install six\nFROM debian AS other\n"
      "RUN pip install no\nFROM ${B}\nENV C=$A-2\n");
  EXPECT_EQ(draft.packages, Strings{"six"});
  EXPECT_EQ(draft.env,
            (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"C", "1-2"}}));
  EXPECT_EQ(reasons(draft), Strings{"FROM debian AS other"});
}

TEST_F(ConvertTest, FrameworksAreFoundByTheirPackages) {
  struct Case {
    const char* requirement;
    const char* framework;
    const char* cuda;
  };
  for (const Case& one :
       {Case{"torch==2.4.0+cu121", "pytorch==2.4.0", "12"}, Case{"Torch", "pytorch", ""},
        Case{"torch==2.4.0+cpu", "pytorch==2.4.0", ""},
        Case{"jax[cuda12_pip]>=0.4", "jax>=0.4", "12"}, Case{"jax[cuda13]", "jax", "13"},
        Case{"tensorflow[and-cuda]", "tensorflow", "12"},
        Case{"tensorflow_cpu", "tensorflow", "cpu"},
        Case{"tensorflow-gpu==2.11", "tensorflow==2.11", "11"},
        Case{"torch ; sys_platform == 'linux'", "pytorch", ""},
        Case{"torch ; platform_machine == 'x86_64'", "", ""}, Case{"numpy", "", ""}}) {
    put("requirements.txt", one.requirement);
    const Draft draft = converted("requirements.txt");
    EXPECT_EQ(draft.framework, one.framework) << one.requirement;
    EXPECT_EQ(draft.cuda, one.cuda) << one.requirement;
    EXPECT_NO_THROW(read_back(draft)) << one.requirement;
  }
}

TEST_F(ConvertTest, FoldersAndSourcesOfUvAreAddresses) {
  put("libs/x/pyproject.toml", "[project]\nname = \"x\"\n");
  put("requirements.txt", "./libs/x[dev] ; os_name == 'posix'\n-e ./libs/x\n./libs/nobody\n");
  const Draft lines = converted("requirements.txt");
  EXPECT_EQ(lines.packages, (Strings{"x[dev] @ ./libs/x ; os_name == 'posix'", "x @ ./libs/x"}));
  EXPECT_EQ(reasons(lines), Strings{"./libs/nobody"});
  put("pyproject.toml",
      "[project]\nname = \"p\"\ndependencies = [\"x>=1\", \"My_Tool[cli]\", \"shared\", \"six\"]\n"
      "[tool.uv]\npackage = true\n[tool.uv.sources]\nx = { path = \"libs/x\", editable = true }\n"
      "my-tool = { git = \"https://h.example/t\", tag = \"v1\", subdirectory = \"a\" }\n"
      "shared = { workspace = true }\n");
  const Draft project = converted("pyproject.toml");
  EXPECT_EQ(project.packages,
            (Strings{"x @ ./libs/x", "My_Tool[cli] @ git+https://h.example/t@v1#subdirectory=a",
                     "shared", "six"}));
  EXPECT_EQ(reasons(project), Strings{"tool.uv.sources.shared"});
}

TEST_F(ConvertTest, NoLoginIsCopied) {
  put("requirements.txt",
      "--index-url https://jo:hunter2@host/simple\n--extra-index-url=http://hunter2@host/x\n"
      "tool @ git+https://jo:hunter2@host/tool\n-f https://hunter2@host/links\n");
  const Draft draft = converted("requirements.txt");
  const std::string text = render_draft(draft, "recipe.yaml");
  EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
  EXPECT_EQ(draft.left_out.size(), 4U);
  for (const LeftOut& one : draft.left_out) {
    EXPECT_EQ(sentence(one).find("hunter2"), std::string::npos);
  }
}

TEST_F(ConvertTest, FormatsByName) {
  EXPECT_EQ(format_of("a/Dockerfile.gpu"), SourceFormat::dockerfile);
  EXPECT_EQ(format_of("train.dockerfile"), SourceFormat::dockerfile);
  EXPECT_EQ(format_of("Containerfile"), SourceFormat::dockerfile);
  EXPECT_EQ(format_of("cog.yaml"), SourceFormat::cog);
  EXPECT_EQ(format_of("env-gpu.yml"), SourceFormat::conda);
  EXPECT_EQ(format_of("requirements-dev.TXT"), SourceFormat::requirements);
  EXPECT_EQ(format_of("pyproject.toml"), SourceFormat::pyproject);
  EXPECT_EQ(format_of("poetry.lock"), SourceFormat::project_lock);
  EXPECT_EQ(format_of("a/setup.py"), SourceFormat::setup);
  EXPECT_EQ(format_of("Pipfile"), SourceFormat::pipfile);
  EXPECT_EQ(format_of("pixi.toml"), SourceFormat::pixi);
  EXPECT_EQ(format_of(".devcontainer/devcontainer.json"), SourceFormat::devcontainer);
  EXPECT_EQ(format_of("a.ipynb"), SourceFormat::notebook);
  EXPECT_EQ(format_of("x/README.md"), SourceFormat::space);
  EXPECT_EQ(format_of("a.lock"), std::nullopt);
}

TEST(ImageName, IsMadeOfAnyText) {
  const std::map<std::string, std::string> expected = {
      {"My Project", "my-project"}, {"a__b..c", "a_b.c"}, {"-x-", "x"}, {"Größe", "gr-e"},
      {"...", "environment"},       {"", "environment"}};
  for (const auto& [text, name] : expected) EXPECT_EQ(image_name_from(text), name) << text;
}

/// Whatever a file holds: a mistake of the person's, or a recipe that reads back.
TEST_F(ConvertTest, DamagedFilesMakeRecipesOrMistakes) {
  const std::map<std::string, std::string> sources = {
      {"Dockerfile",
       "ARG A=3.11\nFROM python:${A}-slim AS x\nRUN apt-get update && apt-get install -y git \\\n"
       "  'g++=4:12' && pip install \"torch==2.4+cu121\" six\nENV A=b C=\"d $A\"\nENV P q r\n"
       "WORKDIR /a/b\nCOPY a b/\nRUN <<E\npip install tqdm\nE\nCMD [\"python\", \"x\"]\n"},
      {"environment.yml",
       "name: a b\ndependencies:\n  - python=3.11\n  - c::numpy=1.2=b\n  - pytorch-cuda=12.1\n"
       "  - pip:\n    - torch==2\n    - -i https://u@h/s\nvariables: {A: \"b: #c\"}\n"},
      {"cog.yaml",
       "build:\n  gpu: true\n  cuda: \"11.8\"\n  python_version: \"3.11\"\n  python_packages: [a, "
       "\"torch==2\"]\n  system_packages: [git]\n  run: [pip install b]\nenvironment: [A=b]\n"},
      {"pyproject.toml",
       "[project]\nname = \"a\"\nrequires-python = \">=3.9\"\ndependencies = "
       "[\"jax[cuda12]>=0.4\", "
       "\"x~=1.0\"]\n[tool.poetry.dependencies]\ny = \"^1.2\"\nz = {version = \"~1\"}\n"},
      {"requirements.txt",
       "-i https://h/s\n--extra-index-url https://h/t\na[b]>=1,<2 ; c\nd==1 \\\n --hash=e\n-e "
       ".\n"}};
  std::mt19937 random(7);
  constexpr std::string_view kBytes = "\n \"'\\${}[]#:;,=<>@-+*\t/&|aA1.\x7f";
  int recipes = 0;
  for (const auto& [name, text] : sources) {
    for (int i = 0; i < rounds(120, 400); ++i) {
      std::string damaged = text;
      for (unsigned edits = random() % 4; edits > 0; --edits) {
        const std::size_t at = random() % damaged.size();
        if (random() % 3 == 0) damaged.erase(at, 1 + random() % 5);
        damaged.insert(std::min(at, damaged.size()), 1, kBytes[random() % kBytes.size()]);
      }
      put(name, damaged);
      try {
        const Draft draft = converted(name);
        EXPECT_NO_THROW(read_back(draft)) << damaged << "\n----\n" << render_draft(draft, "r.yaml");
        ++recipes;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), "source-invalid") << damaged;
      }
    }
    fs::remove(folder_.path() / name);  // a project's requirements may name the project
  }
  EXPECT_GT(recipes, 150);
}

TEST_F(ConvertTest, LinesOfFilesElsewhereAreNotCopied) {
  const TemporaryFolder elsewhere{temporary_root()};
  const std::string secret = (elsewhere.path() / "secret.txt").string();
  write_file(secret, "secret\n", false);
  fs::create_symlink(secret, folder_.path() / "link.txt");
  put("inside.txt", "numpy\n");
  put("sub/deep.txt", "-r ../inside.txt\n");
  put("requirements.txt", "-r " + secret + "\n-r link.txt\n-r sub/deep.txt\n");
  put("environment.yml", "dependencies: [pip: ['-r " + secret + "', '-r inside.txt']]\n");
  put("cog.yaml", "build: {python_requirements: link.txt}\n");
  EXPECT_EQ(converted("requirements.txt").packages, (Strings{"numpy"}));
  EXPECT_EQ(reasons(converted("requirements.txt")), Strings{(folder_.path() / secret).string()});
  EXPECT_EQ(converted("environment.yml").packages, (Strings{"numpy"}));
  EXPECT_EQ(converted("cog.yaml").packages, Strings{});
  EXPECT_EQ(code_of([&] { converted("link.txt"); }), "source-invalid");
}

/// A cloned repository's link may lead to any file of this machine, whose lines a recipe would
/// hold.
TEST_F(ConvertTest, ALinkOutOfItsFolderIsNotConverted) {
  const TemporaryFolder elsewhere{temporary_root()};
  const fs::path secret = elsewhere.path() / "secret";
  write_file(secret, "root: a-secret\n");
  const char* const names[] = {"a.yml", "cog.yaml", "Dockerfile", "pyproject.toml", "b.txt"};
  for (const char* const name : names) {
    fs::create_symlink(secret, folder_.path() / name);
    const Error error = error_of([&] { converted(name); });
    EXPECT_EQ(error.code(), "source-invalid") << name;
    EXPECT_EQ(std::string(error.what()).find("a-secret"), std::string::npos) << error.what();
  }
  put("docker/own.yml", "dependencies: [numpy]\n");
  fs::create_symlink("docker/own.yml", folder_.path() / "own.yml");
  EXPECT_EQ(converted("own.yml").packages, Strings{"numpy"});
}

TEST_F(ConvertTest, MoreOfAKindThanPeopleWriteIsAnError) {
  const auto repeated = [](int count, const auto& line) {
    std::string text;
    for (int i = 0; i < count; ++i) text += line(i);
    return text;
  };
  const auto too_large = [&](const char* name, const std::string& text) {
    put(name, text);
    EXPECT_EQ(code_of([&] { converted(name); }), "too-large") << name << text.substr(0, 100);
  };
  const std::string from = "FROM debian:bookworm\n";
  too_large("a.txt", repeated(10'001, [](int i) { return fmt::format("p{}\n", i); }));
  too_large("b.txt", repeated(10'001, [](int i) { return fmt::format("--p{}\n", i); }));
  too_large("c.txt", repeated(10'001, [](int i) {
              return fmt::format("--extra-index-url https://h{}/x\n", i);
            }));
  too_large("Dockerfile", from + repeated(10'000, [](int) { return "RUN make\n"; }));
  too_large("a.dockerfile", from + "RUN apt-get install -y" +
                                repeated(10'001, [](int i) { return fmt::format(" p{}", i); }));
  too_large("b.dockerfile",
            from + repeated(1'001, [](int i) { return fmt::format("ENV V{}=1\n", i); }));
  too_large("c.dockerfile",
            from + repeated(1'001, [](int i) { return fmt::format("ARG V{}=1\n", i); }));
  put("d.txt", repeated(1'000, [](int i) { return fmt::format("p{}\n", i); }));
  EXPECT_EQ(converted("d.txt").packages.size(), 1'000U);
}

TEST_F(ConvertTest, VariablesThatGrowAreAnError) {
  std::string text = "FROM debian:bookworm\nENV A0=xxxxxxxxxxxxxxxxxxxxxxxx\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("ENV A{0}=$A{1}$A{1}$A{1}$A{1}\n", i, i - 1);
  }
  put("Dockerfile", text);
  try {
    converted("Dockerfile");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "too-large");
  }
}

}  // namespace
}  // namespace mlenv
