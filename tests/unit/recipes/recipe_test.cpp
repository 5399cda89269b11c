#include "recipes/recipe.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// The message of a refused recipe; empty when it is read.
std::string recipe_mistakes(std::string_view text) {
  try {
    parse_recipe(text, "r.yaml");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "recipe-invalid");
    EXPECT_EQ(error.kind(), Kind::usage);
    return error.frames().front();
  }
}

/// Mistakes of a recipe whose required keys stand in the first two lines.
std::string with_head(const std::string& rest) {
  return recipe_mistakes("name: a\nbase: debian:bookworm\n" + rest);
}

TEST(Recipe, ReadsFiles) {
  const Recipe recipe = parse_recipe(
      "name: a\nbase: debian:bookworm\n"
      "files: {./src/: /workspace/, conf//a.toml: /etc/a.toml, .: /}\n",
      "dir/r.yaml");
  ASSERT_EQ(recipe.files.size(), 3U);
  EXPECT_EQ(recipe.files[0].source.text, "src");
  EXPECT_EQ(recipe.files[0].source.line, 3);
  EXPECT_EQ(recipe.files[0].source.column, 9);
  EXPECT_EQ(recipe.files[0].target, "/workspace");
  EXPECT_TRUE(recipe.files[0].into);
  EXPECT_EQ(recipe.files[1].source.text, "conf/a.toml");
  EXPECT_EQ(recipe.files[1].target, "/etc/a.toml");
  EXPECT_FALSE(recipe.files[1].into);
  EXPECT_EQ(recipe.files[2].source.text, ".");
  EXPECT_EQ(recipe.files[2].target, "/");
  EXPECT_EQ(recipe.folder(), "dir");
  EXPECT_EQ(parse_recipe("name: a\nbase: debian:bookworm\nfiles:\n", "r.yaml").folder(), ".");
}

TEST(Recipe, RefusesFilesThatLeadOut) {
  EXPECT_TRUE(says(with_head("files: [src]\n"), "r.yaml:3:8: `files` is a map"));
  EXPECT_TRUE(says(with_head("files: {/src: /w}\n"), "r.yaml:3:9: `/src` is absolute"));
  EXPECT_TRUE(says(with_head("files: {~/src: /w}\n"), "begins with `~`"));
  EXPECT_TRUE(says(with_head("files: {a/../../b: /w}\n"), "leads out through `..`"));
  EXPECT_TRUE(says(with_head("files: {\"\": /w}\n"), "is no path"));
  EXPECT_TRUE(says(with_head("files: {a: /w, a: /v}\n"), "`a` is given twice"));
  EXPECT_TRUE(says(with_head("files: {a: /w, ./a/: /v}\n"), "`a` and `./a/` are the same"));
  EXPECT_TRUE(says(with_head("files: {a: w}\n"), "r.yaml:3:12: `w` is not an absolute path"));
  EXPECT_TRUE(says(with_head("files: {a: /w/../x}\n"), "is not an absolute path"));
  EXPECT_TRUE(says(with_head("files: {a: [/w]}\n"),
                   "the target of `a` is a single text, as in `/workspace`"));
  EXPECT_TRUE(says(with_head("files: {a: }\n"), "`a` has no value"));
  for (const std::string target : {"/proc/x", "/sys", "/dev/", "/tmp/a", "/opt/venv/lib"}) {
    EXPECT_TRUE(says(with_head("files: {a: " + target + "}\n"), "nothing can be copied to"))
        << target;
  }
  EXPECT_EQ(with_head("files: {a: /process, b: /opt/venv2}\n"), "");
}

TEST(Recipe, ReadsEveryKey) {
  const Recipe recipe = parse_recipe(R"(name: team/bert-train
base: debian:bookworm
python: 3.10
framework: pytorch>=2.9
cuda: "13.0"
packages: [transformers, "datasets[audio] >= 2"]
system:
  - git
  - openssh-client=1:9.2p1-2
env: {A: "1", B: "", C: false}
workdir: /work
command: [python, train.py]
bytecode: false
sources:
  debian: {uri: "https://mirror.example/debian", components: [main, contrib]}
  pypi: https://mirror.example/simple
)",
                                     "r.yaml");
  EXPECT_EQ(recipe.name, "team/bert-train");
  EXPECT_EQ(recipe.distribution, "debian");
  EXPECT_EQ(recipe.suite, "bookworm");
  EXPECT_EQ(recipe.python->text, "3.10");  // not 3.1
  EXPECT_EQ(recipe.framework->text, "pytorch>=2.9");
  EXPECT_EQ(recipe.cuda->text, "13.0");
  ASSERT_EQ(recipe.packages.size(), 2U);
  EXPECT_EQ(recipe.packages[1].text, "datasets[audio] >= 2");
  EXPECT_EQ(recipe.packages[1].line, 6);
  EXPECT_EQ(recipe.packages[1].column, 26);
  EXPECT_EQ(recipe.system[1].text, "openssh-client=1:9.2p1-2");
  EXPECT_EQ(recipe.env,
            (std::map<std::string, std::string>{{"A", "1"}, {"B", ""}, {"C", "false"}}));
  EXPECT_EQ(recipe.workdir, "/work");
  EXPECT_EQ(recipe.command, (std::vector<std::string>{"python", "train.py"}));
  EXPECT_FALSE(recipe.bytecode);
  ASSERT_EQ(recipe.sources.debian.size(), 1U);
  EXPECT_EQ(recipe.sources.debian[0].components.size(), 2U);
  EXPECT_EQ(recipe.sources.pypi, std::vector<std::string>{"https://mirror.example/simple"});
  EXPECT_TRUE(recipe.wants_python());
}

TEST(Recipe, HasDefaults) {
  const Recipe recipe = parse_recipe("name: a\nbase: debian:trixie\npackages:\nenv:\n", "r.yaml");
  EXPECT_EQ(recipe.workdir, "/workspace");
  EXPECT_TRUE(recipe.bytecode);
  EXPECT_TRUE(recipe.command.empty());
  EXPECT_FALSE(recipe.wants_python());
}

TEST(Recipe, LongValuesAreNotRepeatedWhole) {
  std::string name(399, 'A');
  for (int i = 0; i < 50'000; ++i) name += "é";
  const std::string said = recipe_mistakes("name: \"" + name + "\"\nbase: debian:bookworm\n");
  EXPECT_LT(said.size(), 1000U);
  EXPECT_NE(said.find("`" + std::string(399, 'A') + "…` is not an image name"), std::string::npos);
  EXPECT_NE(said.find("joined by single `.`, `_`, `-` or `/`\n"), std::string::npos);
}

TEST(Recipe, ReportsAllMistakesInOrderWithLineAndCaret) {
  EXPECT_EQ(recipe_mistakes("name: Bert\nframwork: pytorch\nbase: debain:bookworm\ngpus: sm_80\n"),
            "r.yaml:1:7: `Bert` is not an image name: lower-case letters and digits, joined by "
            "single `.`, `_`, `-` or `/`\n"
            "    name: Bert\n"
            "          ^\n"
            "r.yaml:2:1: unknown key `framwork`; did you mean `framework`?\n"
            "    framwork: pytorch\n"
            "    ^\n"
            "r.yaml:3:7: unknown distribution `debain`; did you mean `debian`?\n"
            "    base: debain:bookworm\n"
            "          ^\n"
            "r.yaml:4:7: `gpus` is a list, as in `[sm_80, sm_90]`\n"
            "    gpus: sm_80\n"
            "          ^");
}

TEST(Recipe, RequiresNameAndBase) {
  const std::string text = recipe_mistakes("python: \"3.11\"\n");
  EXPECT_TRUE(says(text, "`name` is missing"));
  EXPECT_TRUE(says(text, "`base` is missing"));
  EXPECT_TRUE(says(recipe_mistakes(""), "r.yaml:1:1: the recipe is empty"));
  EXPECT_TRUE(says(recipe_mistakes("- a\n"), "a recipe is a map"));
}

TEST(Recipe, RefusesDuplicateKeysAtEveryLevel) {
  EXPECT_TRUE(says(with_head("name: b\n"), "r.yaml:3:1: `name` is given twice, first in line 1"));
  EXPECT_TRUE(says(with_head("env: {A: a, A: b}\n"), "`A` is given twice"));
}

TEST(Recipe, ChecksBases) {
  EXPECT_TRUE(says(recipe_mistakes("name: a\nbase: bookworm\n"), "write `debian:bookworm`"));
  EXPECT_TRUE(
      says(recipe_mistakes("name: a\nbase: debian:bookwurm\n"), "did you mean `bookworm`?"));
  EXPECT_TRUE(
      says(recipe_mistakes("name: a\nbase: debian:stable\n"), "another release every few years"));
}

TEST(Recipe, TakesUbuntuByItsReleasesNames) {
  const Recipe recipe = parse_recipe("name: a\nbase: ubuntu:noble\n", "r.yaml");
  EXPECT_EQ(recipe.distribution, "ubuntu");
  EXPECT_EQ(recipe.suite, "noble");
  EXPECT_TRUE(says(recipe_mistakes("name: a\nbase: ubuntu:nobel\n"), "did you mean `noble`?"));
  EXPECT_TRUE(
      says(recipe_mistakes("name: a\nbase: ubuntu:bookworm\n"), "unknown Ubuntu suite `bookworm`"));
  EXPECT_TRUE(says(recipe_mistakes("name: a\nbase: ubuntu:devel\n"), "as in `ubuntu:noble`"));
  EXPECT_TRUE(says(recipe_mistakes("name: a\nbase: jammy\n"), "write `ubuntu:jammy`"));
  EXPECT_TRUE(says(recipe_mistakes("name: a\nbase: ubunto:noble\n"), "did you mean `ubuntu`?"));
}

TEST(Recipe, TakesDebianPackagesOfASuite) {
  EXPECT_EQ(with_head("system: [git/bookworm-backports, git=1:2.39.5-0+deb12u2]\n"), "");
  EXPECT_TRUE(says(with_head("system: [git/]\n"), "is not a Debian package"));
  EXPECT_TRUE(says(with_head("system: [git/a b]\n"), "is not a Debian package"));
  EXPECT_TRUE(says(with_head("system: [git/a=1]\n"), "is not a Debian package"));
}

TEST(Recipe, TakesAPythonOfItsOwn) {
  const std::string digest(64, 'a');
  const std::string start = "sources: {python: {url: \"https://x.example/python.tar.gz\"";
  EXPECT_EQ(with_head(start + ", sha256: " + digest + "}}\n"), "");
  EXPECT_TRUE(says(with_head(start + "}}\n"), "`sha256` is missing"));
  EXPECT_TRUE(says(with_head(start + ", sha256: 12}}\n"), "64 lower-case hex digits"));
  EXPECT_TRUE(says(with_head("sources: {python: {sha256: " + digest + "}}\n"), "`url` is missing"));
}

TEST(Recipe, ChecksValues) {
  EXPECT_TRUE(says(with_head("python: 3.11.2\n"), "r.yaml:3:9: `3.11.2` is not a Python version"));
  EXPECT_TRUE(says(with_head("python: 3\n"), "is not a Python version"));
  EXPECT_TRUE(says(with_head("cuda: gpu\n"), "is not a CUDA release"));
  EXPECT_TRUE(says(with_head("cuda: 12.6.1\n"), "is not a CUDA release"));
  EXPECT_EQ(with_head("packages: [a]\ncuda: 12\n"), "");
  EXPECT_TRUE(says(with_head("workdir: work\n"), "is not an absolute path"));
  EXPECT_TRUE(says(with_head("workdir: /a/../b\n"), "is not an absolute path"));
  EXPECT_TRUE(says(with_head("bytecode: \"true\"\n"), "without quotes"));
  EXPECT_TRUE(says(with_head("system: [Git]\n"), "`Git` is not a Debian package"));
  EXPECT_TRUE(says(with_head("env: {1A: x}\n"), "`1A` is not a name"));
  EXPECT_TRUE(says(with_head("env: {A: [x]}\n"), "the value of `A` is a list"));
  EXPECT_TRUE(says(with_head("env: {A: {b: c}}\n"), "the value of `A` is a map"));
  EXPECT_TRUE(says(with_head("env: {A: }\n"), "`A` has no value; write `\"\"`"));
}

TEST(Recipe, CudaNeedsSomethingToActOn) {
  const std::string nothing = "r.yaml:3:7: `cuda` has nothing to act on";
  EXPECT_TRUE(says(with_head("cuda: 13\n"), nothing));
  EXPECT_TRUE(says(with_head("cuda: 13\npackages: []\nframework:\n"), nothing));
  EXPECT_FALSE(says(with_head("cuda: 13\nframework: [a]\n"), "nothing to act on"));
  EXPECT_EQ(with_head("cuda: cpu\n"), "");
}

TEST(Recipe, AKeyWithoutAValueIsAsGoodAsAbsent) {
  EXPECT_EQ(with_head("python:\nframework:\ncuda:\npackages:\nsystem:\nenv:\nworkdir:\ncommand:\n"
                      "bytecode:\nsources:\n"),
            "");
  EXPECT_EQ(parse_recipe("name: a\nbase: debian:trixie\nworkdir:\nbytecode: ~\n", "r.yaml").workdir,
            "/workspace");
  EXPECT_TRUE(
      says(recipe_mistakes("name:\nbase: debian:bookworm\n"), "r.yaml:1:1: `name` has no value"));
}

TEST(Recipe, SuggestsKeysThatAreNearOrMeanTheSame) {
  EXPECT_TRUE(says(with_head("cmd: a\n"), "unknown key `cmd`; did you mean `command`?"));
  EXPECT_TRUE(says(with_head("dependencies: a\n"), "did you mean `packages`?"));
  EXPECT_TRUE(says(with_head("evn: a\n"), "did you mean `env`?"));
  EXPECT_TRUE(says(with_head("cua: a\n"), "did you mean `cuda`?"));
  EXPECT_FALSE(says(with_head("cub: a\n"), "did you mean"));
  EXPECT_TRUE(says(recipe_mistakes("name: a\nbase: debian:12\n"),
                   "`12`; there are bullseye, bookworm, trixie, forky, sid"));
}

TEST(Recipe, ExplainsAPlainCommand) {
  EXPECT_TRUE(says(with_head("command: python train.py\n"),
                   "`command` is a list, as in `[python, train.py]`"));
  EXPECT_TRUE(says(with_head("command: run --fast x\n"), "as in `[run, --fast, x]`"));
}

TEST(Recipe, PointsIntoRequirements) {
  EXPECT_TRUE(says(with_head("packages: [numpy=1.0]\n"),
                   "r.yaml:3:17: `=` is not a version operator; did you mean `==`?"));
  EXPECT_TRUE(says(with_head("packages:\n  - \"a>\"\n"), "r.yaml:4:8: a version is missing"));
  EXPECT_TRUE(says(with_head("packages: [\"a @ https://me@x/a.whl\"]\n"),
                   "r.yaml:3:17: a recipe is a file that people share"));
  EXPECT_TRUE(says(with_head("packages: [./a]\n"), "say which package that is: `NAME @ ./a`"));
  EXPECT_TRUE(says(with_head("framework: torch @ ./a\n"), "write this under `packages`"));
  EXPECT_TRUE(says(with_head("packages: [pytorch]\n"), "the package is called `torch`"));
}

TEST(Recipe, RefusesLoginsInSources) {
  const std::string text = with_head("sources: {pypi: [\"https://me:secret@x.example/simple\"]}\n");
  EXPECT_TRUE(says(text, "must not hold a login"));
  EXPECT_TRUE(says(with_head("sources: {pipy: []}\n"), "did you mean `pypi`?"));
  EXPECT_TRUE(says(with_head("sources: {debian: {suite: bookworm}}\n"), "`uri` is missing"));
  const std::string archive = "sources: {debian: {uri: \"https://x.example/d\", ";
  EXPECT_EQ(with_head(archive + "signed-by: keys/x.asc, check-valid-until: false}}\n"), "");
  EXPECT_TRUE(says(with_head(archive + "signed-by: ../x.asc}}\n"), "a keyring's path"));
  EXPECT_TRUE(says(with_head(archive + "check-valid-until: no}}\n"), "`true` or `false`"));
  EXPECT_TRUE(says(with_head(archive + "suite: ./}}\n"), "are not supported"));
}

TEST(Recipe, SyntaxMistakesHaveAPlace) {
  EXPECT_TRUE(says(recipe_mistakes("name: a\n\tbase: b\n"), "r.yaml:2:"));
  EXPECT_TRUE(says(recipe_mistakes("name: [a\n"), "r.yaml:"));
  EXPECT_TRUE(says(recipe_mistakes("name: a\n---\nname: b\n"), "starts a second"));
  EXPECT_TRUE(
      says(recipe_mistakes("n\n# c\na:\n  - b\n   - c\n"), "r.yaml:5:4: `- c` is indented deeper"));
  EXPECT_TRUE(
      says(recipe_mistakes("- a\nb: c\n"), "r.yaml:2:1: this does not fit what stands above it"));
  EXPECT_TRUE(says(recipe_mistakes("name: \xff\n"), "r.yaml:1:7: the file is not UTF-8 text"));
  EXPECT_TRUE(says(recipe_mistakes("name: ä\xff\n"), "r.yaml:1:8: the file is not UTF-8 text"));
  EXPECT_TRUE(says(recipe_mistakes("name: ä\x01\n"), "r.yaml:1:8: control characters"));
  EXPECT_TRUE(says(recipe_mistakes("name: &a b\nbase: *a\n"), "anchors"));
  EXPECT_TRUE(says(recipe_mistakes("name: !!str b\n"), "tags"));
  EXPECT_TRUE(
      says(recipe_mistakes("name: a\n---\npackages: [b\n"), "r.yaml:3:11: this `[` is not closed"));
  EXPECT_TRUE(says(recipe_mistakes(std::string(5000, '[')), "r.yaml:1:"));
}

TEST(Recipe, TextsThatDoNotEndWhereTheyShouldAreExplained) {
  const auto only = [](const std::string& rest) { return with_head(rest); };
  EXPECT_EQ(
      only("packages:\n  - idna\n   - six\n"),
      "r.yaml:5:4: `- six` is indented deeper than the items above it\n       - six\n       ^");
  EXPECT_TRUE(
      says(only("packages:\n  - a\n - b\n"), "r.yaml:5:2: this item is indented otherwise"));
  EXPECT_TRUE(says(recipe_mistakes("name: a\n  base: debian:bookworm\n"),
                   "r.yaml:2:3: this line is indented deeper than the line above it"));
  EXPECT_TRUE(
      says(recipe_mistakes("name a\nbase: b\n"), "r.yaml:1:1: this line is no `key: value`"));
  EXPECT_TRUE(says(only("packages: [a, b\nenv: {A: b}\n"), "r.yaml:3:11: this `[` is not closed"));
  EXPECT_TRUE(says(only("packages: [a\n  b]\n"), "r.yaml:4:3: a `,` is missing before this line"));
  EXPECT_TRUE(says(only("env: {A: b\n"), "r.yaml:3:6: this `{` is not closed"));
  EXPECT_TRUE(
      says(only("env: {A: 'b}\nworkdir: /x\n"), "r.yaml:3:10: this `'` has no closing one"));
  EXPECT_TRUE(says(only("workdir: \"a\\\"\n"), "r.yaml:3:10: this `\"` has no closing one"));
  EXPECT_TRUE(says(only("env:\n\tA: b\n"), "r.yaml:4:1: a tab is no indentation: use spaces"));
  EXPECT_TRUE(says(only("env: *a\n"), "r.yaml:3:6: aliases (`*name`) are not supported"));
  EXPECT_TRUE(says(only("packages: @x\n"), "`@` cannot begin a value"));
  EXPECT_TRUE(says(only("<<<<<<< HEAD\nworkdir: /a\n=======\n"),
                   "r.yaml:3:1: git left its conflict marker `<<<<<<<` here"));
  EXPECT_EQ(only("env: {A: \"b\n  c\", B: 'it''s', C: \"\\\"\"}\ncommand: [a,\n  b]\n"), "");
  EXPECT_EQ(only("env:\n  A: |\n    b\n    c\n"), "");
}

TEST(Recipe, AnAnchorOrATagIsTheOnlyMistake) {
  const std::string anchor = with_head("workdir: &x /a\ncommand: [b]\n");
  EXPECT_TRUE(anchor.starts_with("r.yaml:3:10: anchors (`&name`) are not supported")) << anchor;
  EXPECT_FALSE(says(anchor, "r.yaml:4:")) << anchor;
  for (const char* value : {"!x /a", "!x '/a'"}) {
    const std::string tag = with_head(fmt::format("workdir: {}\ncommand: [b]\n", value));
    EXPECT_TRUE(tag.starts_with("r.yaml:3:10: tags (`!name`) are not supported")) << tag;
    EXPECT_FALSE(says(tag, "goes on")) << tag;
    EXPECT_FALSE(says(tag, "r.yaml:4:")) << tag;
  }
}

TEST(Recipe, SaysWhatIsMissingInWordsOfItsOwn) {
  EXPECT_TRUE(says(recipe_mistakes("name:a\nbase:debian:bookworm\n"),
                   "r.yaml:1:5: a blank is missing after this `:`\n    name:a\n        ^"));
  EXPECT_TRUE(says(with_head("env:\n  Ä:1\n  B:2\n"), "r.yaml:4:4: a blank is missing"));
  EXPECT_TRUE(
      says(with_head("command:\n  curl http://x\n  -o x\n"), "r.yaml:5:3: this line goes on"));
  EXPECT_TRUE(says(with_head("packages: [*]\n"), "r.yaml:3:12: `*` cannot begin a value"));
  EXPECT_TRUE(says(with_head("command:\n  - a\n  - &\n"), "r.yaml:5:5: `&` cannot begin a value"));
}

TEST(Recipe, CountsColumnsInCharacters) {
  const std::string text =
      recipe_mistakes("name: a\nbase: debian:bookworm\nenv: {A: \"äöü\", B: [x]}\n");
  EXPECT_TRUE(says(text, "r.yaml:3:20: ")) << text;
}

TEST(Recipe, KeepsLongFilesReadable) {
  std::string text = "name: a\nbase: debian:bookworm\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("unknown{}: 1\n", i);
  EXPECT_TRUE(recipe_mistakes(text).ends_with("\nand 80 more mistakes"));
  EXPECT_TRUE(
      recipe_mistakes(text.substr(0, text.find("unknown21"))).ends_with("\nand 1 more mistake"));
}

TEST(Recipe, LaterErrorsPointIntoTheFile) {
  const Recipe recipe =
      parse_recipe("name: a\nbase: debian:bookworm\ncuda: 12.6\npackages: [a]\n", "r.yaml");
  const Error error = recipe_error(recipe, *recipe.cuda, "nothing here uses it");
  EXPECT_EQ(error.frames().front(),
            "r.yaml:3:7: nothing here uses it\n    cuda: 12.6\n          ^");
}

}  // namespace
}  // namespace mlenv
