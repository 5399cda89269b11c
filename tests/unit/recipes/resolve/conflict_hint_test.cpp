// What uv 0.13.8 said of real packages in November 2026, and what becomes of it.
#include "recipes/resolve/conflict_hint.hpp"

#include <gtest/gtest.h>

#include "recipes/resolve/uv.hpp"

namespace mlenv {
namespace {

Conflict explained_as(const std::string& rest, const std::string& said,
                      const std::vector<std::string>& others = {}) {
  const Recipe recipe = parse_recipe("name: x\nbase: debian:bookworm\n" + rest, "r.yaml");
  auto answer = explain_uv_failure("error: No solution found when resolving dependencies\n" + said);
  Conflict conflict = std::get<Conflict>(std::move(answer));
  explain_conflict(
      conflict, recipe, "3.11.2", [](const std::string&) { return "2.3.3"; },
      [&](const std::string&) { return others; });
  return conflict;
}

TEST(ConflictHint, WheelsForOtherPythonsNameABaseThatHasOne) {
  const Conflict conflict = explained_as(
      "framework: pytorch==1.12.1\n",
      "  cause: Because torch==1.12.1 has no wheels with a matching Python ABI tag (e.g., `cp311`) "
      "and you require torch==1.12.1, we can conclude that your requirements are unsatisfiable.\n\n"
      "hint: You require CPython 3.11 (`cp311`), but we only found wheels for `torch` (v1.12.1) "
      "with "
      "the following Python ABI tags: `cp37m`, `cp38`, `cp39`, `cp310`\n");
  EXPECT_EQ(conflict.headline, "`torch` 1.12.1 has no wheel for Python 3.11");
  EXPECT_EQ(conflict.facts,
            std::vector<std::string>{"its wheels are for Python 3.7, 3.8, 3.9 and 3.10"});
  EXPECT_EQ(conflict.hint,
            "write `base: debian:bullseye` (Python 3.9) or `base: ubuntu:jammy` (Python "
            "3.10), or choose another release of `torch`");
}

// A range, whose releases uv tells together.
TEST(ConflictHint, ARangeWithoutAWheelNamesPythonsAndABase) {
  const std::string said =
      "  cause: Because only the following versions of tensorflow are available:\n"
      "             tensorflow<2.6\n             tensorflow>=2.8\n"
      "         and all of:\n             tensorflow>=2.5.0,<2.5.3\n             "
      "tensorflow==2.5.3\n"
      "         have no wheels with a matching Python ABI tag (e.g., `cp311`), we can conclude "
      "that "
      "tensorflow>=2.5,<2.6 cannot be used.\n"
      "         And because you require tensorflow>=2.5,<2.6, we can conclude that your "
      "requirements are unsatisfiable.\n\n"
      "hint: You require CPython 3.11 (`cp311`), but we only found wheels for `tensorflow` "
      "(v2.5.3) with the following Python ABI tags: `cp36m`, `cp37m`, `cp38`, `cp39`\n";
  Conflict conflict = explained_as("packages: [\"tensorflow>=2.5,<2.6\"]\n", said, {"3.8", "3.9"});
  EXPECT_EQ(conflict.headline,
            "no release of `tensorflow` that the recipe allows has a wheel for Python 3.11");
  EXPECT_EQ(conflict.facts.back(), "there is a wheel for Python 3.8 and 3.9");
  EXPECT_EQ(conflict.hint,
            "write `base: debian:bullseye` (Python 3.9) or `base: ubuntu:focal` (Python 3.8), or "
            "choose another release of `tensorflow`");
  // Asked for by another package.
  conflict =
      explained_as("packages: [models]\n",
                   "  cause: Because tensorflow==2.5.3 has no wheels with a matching Python "
                   "ABI tag (e.g., `cp311`) and models==2.5 depends on tensorflow>=2.5,<2.6, "
                   "we can conclude that models==2.5 cannot be used.\n",
                   {"3.9"});
  EXPECT_EQ(conflict.headline,
            "`models` asks for `tensorflow>=2.5,<2.6`, which has no wheel for Python 3.11");
  EXPECT_TRUE(conflict.hint.ends_with("or choose another release of `models`")) << conflict.hint;
  // Something else speaks against those that have one.
  conflict = explained_as("packages: [\"tensorflow>=2.5,<2.6\"]\n", said, {});
  EXPECT_EQ(conflict.headline, "no set of wheels satisfies the recipe");
}

TEST(ConflictHint, AReleaseThatIsHeldBackIsToldSo) {
  const auto hint = [](const std::string& packages, const std::string& newest) {
    const Recipe recipe =
        parse_recipe("name: x\nbase: debian:bookworm\npackages: " + packages + "\n", "r.yaml");
    return held_back_hint(recipe, "late", "1.2", [&](const std::string&) { return newest; });
  };
  EXPECT_EQ(hint("[late, other]", "2.0"),
            "something keeps `late` from being newer than 1.2: `constraints: [\"late>=2.0\"]` has "
            "mlenv say what");
  EXPECT_EQ(hint("[other]", "2.0"), hint("[late]", "2.0"));
  EXPECT_EQ(hint("[late==1.2]", "2.0"), "");
  EXPECT_EQ(hint("[late]", "1.2"), "");
  EXPECT_EQ(hint("[late]", ""), "");
}

TEST(ConflictHint, ARecipeThatNamesItsPythonIsToldBothKeys) {
  const Recipe recipe =
      parse_recipe("name: x\nbase: debian:bookworm\npython: \"3.11\"\n", "r.yaml");
  EXPECT_EQ(other_python_hint(recipe, {"3.8", "3.9"}, "thing"),
            "write `base: debian:bullseye` with `python: \"3.9\"` or `base: ubuntu:focal` with "
            "`python: \"3.8\"`, or choose another release of `thing`");
}

TEST(ConflictHint, ExactVersionsOfAnotherTimeHaveADay) {
  const auto hint = [](const std::string& rest) {
    const Recipe recipe = parse_recipe("name: x\nbase: debian:bookworm\n" + rest, "r.yaml");
    return date_hint(recipe, "late");
  };
  const std::string pins = "packages: [a==1, b==2, c==3";
  EXPECT_NE(hint(pins + "]\n").find("exclude-newer"), std::string::npos);
  EXPECT_EQ(hint(pins + ", late==4]\n"), "");
  EXPECT_EQ(hint(pins + "]\nexclude-newer: 2021-01-01\n"), "");
  EXPECT_EQ(hint("packages: [a==1, b]\n"), "");
}

TEST(ConflictHint, PythonsThatAReleaseHasWheelsFor) {
  const std::string told =
      "hint: You require CPython 3.11 (`cp311`), but we only found wheels for `NumPy` (v1.15.4) "
      "with the following Python ABI tags: `cp27m`, `cp27mu`, `cp36m`, `cp37m`\n";
  EXPECT_EQ(pythons_of_wheels(told, "numpy"), (std::vector<std::string>{"2.7", "3.6", "3.7"}));
  EXPECT_EQ(pythons_of_wheels(told, "scipy"), std::vector<std::string>{});
  EXPECT_EQ(pythons_of_wheels("", "numpy"), std::vector<std::string>{});
  EXPECT_EQ(and_joined({"2.7", "3.6", "3.7"}), "2.7, 3.6 and 3.7");
}

TEST(ConflictHint, APackageForAnotherSystemIsSaidToBeOne) {
  const Conflict conflict = explained_as(
      "packages: [pywin32]\n",
      "  cause: Because pywin32<=302 has no wheels with a matching Python ABI tag (e.g., `cp311`) "
      "and "
      "only the following versions of pywin32 are available:\n"
      "             pywin32<=302\n             pywin32>=303\n"
      "         we can conclude that pywin32<303 cannot be used.\n"
      "         And because pywin32>=303 has no wheels with a matching platform tag (e.g., "
      "`manylinux_2_36_x86_64`) and you require pywin32, we can conclude that your requirements "
      "are "
      "unsatisfiable.\n\n"
      "hint: You require CPython 3.11 (`cp311`), but we only found wheels for `pywin32` (v302) "
      "with "
      "the following Python ABI tags: `cp36m`, `cp37m`, `cp38`, `cp39`, `cp310`\n\n"
      "hint: Wheels are available for `pywin32` (v312) on the following platforms: `win32`, "
      "`win_amd64`, `win_arm64`\n");
  EXPECT_EQ(conflict.headline, "`pywin32` is for Windows alone");
  EXPECT_EQ(conflict.hint, "leave it out, or write `pywin32 ; sys_platform == 'win32'`");
}

TEST(ConflictHint, APackageForALaterPythonNamesABase) {
  const Conflict conflict = explained_as(
      "packages: [\"numpy>=2.5\"]\n",
      "  cause: Because the current Python version (3.11.2) does not satisfy Python>=3.12 and "
      "numpy>=2.5.0 depends on Python>=3.12, we can conclude that numpy>=2.5.0 cannot be used.\n"
      "         And because you require numpy>=2.5, we can conclude that your requirements are "
      "unsatisfiable.\n");
  EXPECT_EQ(conflict.headline, "numpy>=2.5.0 needs Python >=3.12, and the image has 3.11.2");
  EXPECT_EQ(conflict.hint,
            "write `base: debian:trixie` (Python 3.13) or `base: ubuntu:questing` (Python "
            "3.13), or allow a release of `numpy` for Python 3.11");
}

TEST(ConflictHint, APackageWhoseReleasesAreAllForALaterPythonDoesSo) {
  const auto said = [](const std::string& python) {
    return "  cause: Because the current Python version (3.11.2) does not satisfy Python" + python +
           " and all versions of tablekit depend on Python" + python +
           ", we can conclude that all versions of tablekit cannot be used.\n"
           "         And because you require tablekit, we can conclude that your requirements are "
           "unsatisfiable.\n";
  };
  const Conflict conflict = explained_as("packages: [tablekit]\n", said(">=3.12"));
  EXPECT_EQ(conflict.headline, "tablekit needs Python >=3.12, and the image has 3.11.2");
  EXPECT_TRUE(conflict.hint.starts_with("write `base: debian:trixie` (Python 3.13)"))
      << conflict.hint;
  EXPECT_EQ(explained_as("packages: [tablekit]\n", said(">=3.15")).hint,
            "write `python: \"3.15\"`, or allow a release of `tablekit` for Python 3.11");
}

TEST(ConflictHint, AReleaseThatIsNotThereNamesTheNewest) {
  const Conflict conflict = explained_as("packages: [pandas==2.3.99]\n",
                                         "  cause: Because there is no version of pandas==2.3.99 "
                                         "and you require pandas==2.3.99, we can "
                                         "conclude that your requirements are unsatisfiable.\n");
  EXPECT_EQ(conflict.headline, "the Python indexes have no `pandas` 2.3.99");
  EXPECT_EQ(conflict.facts, std::vector<std::string>{"the newest that fits the image is 2.3.3"});
}

TEST(ConflictHint, ALocalVersionIsAnotherIndexs) {
  const Conflict conflict = explained_as(
      "packages: [torch==2.1.0+cu118]\n",
      "  cause: Because there is no version of torch==2.1.0+cu118 and you require "
      "torch==2.1.0+cu118, we can conclude that your requirements are unsatisfiable.\n");
  EXPECT_EQ(conflict.hint,
            "`+cu118` marks a build of another index: name that under `sources: {pypi: […]}`, or "
            "leave it out and say the CUDA release with `cuda`");
}

TEST(ConflictHint, NobodyIsToldOfDemandsThatTheyDidNotWrite) {
  const Conflict conflict = explained_as(
      "framework: pytorch==2.7.1\ncuda: \"13.0\"\n",
      "  cause: Because torch==2.7.1 depends on nvidia-cuda-runtime-cu12==12.6.77 and you require "
      "torch==2.7.1, we can conclude that you require nvidia-cuda-runtime-cu12==12.6.77.\n"
      "         And because you require nvidia-cuda-runtime-cu12<0, we can conclude that your "
      "requirements are unsatisfiable.\n");
  EXPECT_EQ(conflict.facts.back(), "`cuda: \"13.0\"` asks for nvidia-cuda-runtime-cu12<0");
}

TEST(ConflictHint, APackageForTwoOtherSystems) {
  const Conflict conflict = explained_as(
      "packages: [python-magic-bin]\n",
      "  cause: Because all versions of python-magic-bin have no wheels with a matching platform "
      "tag (e.g., `manylinux_2_36_x86_64`) and you require python-magic-bin, we can conclude that "
      "your requirements are unsatisfiable.\n\nhint: Wheels are available for `python-magic-bin` "
      "(v0.4.14) on the following platforms: `macosx_10_6_intel`, `win32`, `win_amd64`\n");
  EXPECT_EQ(conflict.headline, "`python-magic-bin` is for Windows and macOS alone");
  EXPECT_EQ(conflict.hint, "leave it out, or write `python-magic-bin ; sys_platform != 'linux'`");
}

TEST(UvMessages, YankedReleasesAreMarked) {
  std::vector<PylockPackage> packages(2);
  packages[0].name = "attrs";
  packages[0].version = "21.1.0";
  packages[1].name = "my-tool";
  packages[1].version = "1";
  const std::string said =
      "Resolved 2 packages in 5ms\n"
      "warning: `attrs==21.1.0` is yanked (reason: \"Not importable.\")\n"
      "warning: `my-tool==1` is yanked\n";
  mark_yanked(said, packages);
  EXPECT_EQ(packages[0].yanked, "Not importable");
  EXPECT_EQ(packages[1].yanked, "");
  EXPECT_EQ(without_uv_warnings(said + "error: no\n  cause: so"), "error: no\n  cause: so");
}

}  // namespace
}  // namespace mlenv
