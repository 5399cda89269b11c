// What builds that failed said, and the hint that it makes. The texts are as build tools and
// compilers word them, some cut from real builds.
#include "builder/build_hint.hpp"

#include <gtest/gtest.h>

namespace mlenv {
namespace {

std::string hint_of(std::string_view said, FailedBuild build = {}) {
  build.said = said;
  if (build.package.empty()) build.package = "pkg";
  return build_hint(build);
}

bool hints(std::string_view said, std::string_view line, const FailedBuild& build = {}) {
  const std::string hint = hint_of(said, build);
  EXPECT_NE(hint.find(line), std::string::npos) << hint;
  return hint.find(line) != std::string::npos;
}

TEST(BuildHint, UndeclaredModules) {
  EXPECT_TRUE(
      hints("ModuleNotFoundError: No module named 'torch'", "`build: {requires: {pkg: [torch]}}`"));
  EXPECT_TRUE(hints("No module named 'sklearn.utils'", "requires: {pkg: [scikit-learn]}"));
  EXPECT_TRUE(hints("No module named 'cv2'", "requires: {pkg: [opencv-python-headless]}"));
  EXPECT_TRUE(hints("No module named 'yaml'", "requires: {pkg: [PyYAML]}"));
  EXPECT_TRUE(hints("/opt/venv/bin/python3: No module named pip\n", "requires: {pkg: [pip]}"));
  EXPECT_TRUE(hints("No module named 'distutils'", "requires: {pkg: [setuptools]}"));
  EXPECT_TRUE(hints("No module named 'imp'", "Python 3.12 has no `imp`"));
  // With a warning the build went on.
  EXPECT_TRUE(
      hints("functional_tensor.py:258: UserWarning: Failed to initialize NumPy: No module "
            "named 'numpy' (Triggered internally at tensor_numpy.cpp:84.)\n"
            "FileNotFoundError: [Errno 2] No such file or directory: 'git'",
            "system: [git]"));
  // A name that nothing is known of is not guessed.
  const std::string unknown = hint_of("No module named 'ourtool'");
  EXPECT_EQ(unknown.find("[ourtool]"), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("`ourtool`"), std::string::npos) << unknown;
}

TEST(BuildHint, Variables) {
  FailedBuild build;
  build.image_env = {{"SKIP_CUDA_BUILD", "1"}};
  EXPECT_TRUE(hints("SKIP_CUDA_BUILD is not set", "`build: {env: {pkg: {SKIP_CUDA_BUILD: ", build));
  EXPECT_TRUE(hints("RuntimeError: TE_FRAMEWORK is not set", "env: {pkg: {TE_FRAMEWORK: "));
  const std::string other = hint_of("the default is not set");
  EXPECT_EQ(other.find("env:"), std::string::npos) << other;
}

TEST(BuildHint, OlderBuildTools) {
  EXPECT_TRUE(hints("ModuleNotFoundError: No module named 'pkg_resources'",
                    "`build: {constraints: [\"setuptools<81\"]}`", {.tools = {"setuptools"}}));
  EXPECT_TRUE(hints("No module named 'pkg_resources'",
                    "`build: {requires: {pkg: [\"setuptools<81\"]}}`", {.tools = {"hatchling"}}));
  EXPECT_TRUE(hints("error in pkg setup command: use_2to3 is invalid.", "setuptools<58"));
  EXPECT_TRUE(
      hints("error in gym setup command: 'extras_require' must be a dictionary whose "
            "values are strings or lists of strings containing valid project/version "
            "requirement specifiers.",
            "setuptools<66"));
  EXPECT_TRUE(hints("No module named 'distutils.msvccompiler'", "setuptools<74"));
  EXPECT_TRUE(hints("TypeError: new_compiler() got an unexpected keyword argument 'dry_run'",
                    "setuptools<81"));
  EXPECT_TRUE(hints("AttributeError: install_layout. Did you mean: 'install_platlib'?",
                    "SETUPTOOLS_USE_DISTUTILS"));
}

TEST(BuildHint, WheelThatGoesWithAnOlderSetuptools) {
  const std::string_view dictionary =
      "error in gym setup command: 'extras_require' must be a dictionary whose values are strings";
  EXPECT_TRUE(hints(dictionary, "`build: {constraints: [\"setuptools<66\", \"wheel<0.40\"]}`"));
  EXPECT_TRUE(hints("use_2to3 is invalid", "[\"setuptools<58\", \"wheel<0.40\"]"));
  EXPECT_TRUE(hints("error: invalid command 'bdist_wheel'", "[\"wheel<0.46\"]",
                    {.tools = {"setuptools", "wheel"}}));
  EXPECT_TRUE(hints("error: invalid command 'bdist_wheel'", "requires: {pkg: [\"wheel<0.46\"]}",
                    {.tools = {"setuptools"}}));
  // One that goes on with today's wheel has it as it is.
  EXPECT_TRUE(
      hints("No module named 'setuptools.command.test'", "constraints: [\"setuptools<72\"]"));
}

TEST(BuildHint, KeepsTheRecipesConstraints) {
  const std::string_view dictionary = "'install_requires' must be a string or list of strings";
  EXPECT_TRUE(hints(dictionary, "constraints: [\"Cython<3\", \"setuptools<66\", \"wheel<0.40\"]",
                    {.constraints = {"Cython<3"}}));
  EXPECT_TRUE(hints(dictionary, "constraints: [\"cython<3\", \"setuptools<66\", \"wheel<0.40\"]",
                    {.constraints = {"Setuptools <80", "cython<3", "wheel"}}));
}

TEST(BuildHint, WhatItTellsPeopleToInstall) {
  EXPECT_TRUE(hints("Please install it: `sudo apt-get install -y libfoo-dev libbar-dev`.",
                    "`system: [libfoo-dev, libbar-dev]`"));
  EXPECT_TRUE(hints("run apt install libfoo-dev", "[build-essential, python3-dev, libfoo-dev]",
                    {.compiler = false}));
  EXPECT_TRUE(hints("run apt install build-essential libfoo-dev",
                    "`system: [build-essential, libfoo-dev]`", {.compiler = false}));
  // A header of its own says which.
  EXPECT_TRUE(
      hints("sudo apt-get install libother-dev\n"
            "a.c:1:10: fatal error: portaudio.h: No such file or directory\n",
            "portaudio19-dev"));
}

TEST(BuildHint, WhatCanBeFollowedWithoutAChoice) {
  EXPECT_EQ(remedy_of_build_hint("it needs a compiler: `system: [build-essential, python3-dev]`"),
            (Remedy{{"system", {"build-essential", "python3-dev"}}}));
  EXPECT_EQ(remedy_of_build_hint("x: `build: {constraints: [\"setuptools<66\", \"wheel<0.40\"]}`"),
            (Remedy{{"build.constraints", {"setuptools<66", "wheel<0.40"}}}));
  EXPECT_EQ(remedy_of_build_hint("x: `build: {requires: {pkg: [numpy]}}`"),
            (Remedy{{"build.requires.pkg", {"numpy"}}}));
  for (const char* text :
       {"", "it needs Rust: `system: [cargo]`, and `build: {network: true}`",
        "name the package that has it, as in `build: {requires: {pkg: [numpy]}}`",
        "`system: [llvm-14-dev]` or the one that it names", "choose another `python`"}) {
    EXPECT_TRUE(remedy_of_build_hint(text).empty()) << text;
  }
}

TEST(BuildHint, OtherPackagesAndPythons) {
  EXPECT_TRUE(
      hints("- as a last resort, set the environment variable\n  "
            "SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL=True to avoid this error",
            "`scikit-learn`"));
  EXPECT_TRUE(
      hints("RuntimeError: Cannot install on Python version 3.11.2; only versions "
            ">=3.6,<3.10 are supported.",
            "`python`"));
}

TEST(BuildHint, Network) {
  const std::string_view offline =
      "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>";
  EXPECT_TRUE(hints(offline, "`build: {network: true}`"));
  FailedBuild online;
  online.network = true;
  EXPECT_EQ(hint_of(offline, online).find("network: true"), std::string::npos);
  EXPECT_TRUE(
      hints("ERROR: Could not find a version that satisfies the requirement "
            "tensorrt-cu12-libs==10.7.0 (from versions: none)\nERROR: No matching "
            "distribution found for tensorrt-cu12-libs==10.7.0\n",
            "requires: {pkg: [\"tensorrt-cu12-libs==10.7.0\"]}"));
}

TEST(BuildHint, FinishedWheels) {
  FailedBuild build;
  build.package = "flash-attn";
  EXPECT_TRUE(
      hints("error: <urlopen error [Errno -3] Temporary failure in name resolution>\n"
            "Guessing wheel URL:  https://host.example/flash_attn-2.5.6+cu122.whl",
            "FLASH_ATTENTION_FORCE_BUILD: \"TRUE\"", build));
}

TEST(BuildHint, CompilersAndPrograms) {
  EXPECT_TRUE(hints("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory",
                    "system: [build-essential, python3-dev]"));
  EXPECT_TRUE(hints("FileNotFoundError: [Errno 2] No such file or directory: 'g++'",
                    "system: [build-essential, python3-dev]"));
  EXPECT_TRUE(hints("../meson.build:1:0: ERROR: Unknown compiler(s): [['cc'], ['gcc']]",
                    "system: [build-essential, python3-dev]"));
  EXPECT_TRUE(hints("FileNotFoundError: [Errno 2] No such file or directory: 'cmake'",
                    "requires: {pkg: [cmake, ninja]}"));
  EXPECT_TRUE(hints("Error: pg_config executable not found.", "system: [libpq-dev]"));
  EXPECT_TRUE(hints("error: Cannot find 'mpicc' program.", "system: [libopenmpi-dev]"));
  EXPECT_TRUE(hints("/bin/sh: 1: swig: not found", "system: [swig]"));
  EXPECT_TRUE(hints("error: can't find Rust compiler", "system: [cargo]"));
  EXPECT_TRUE(
      hints("FileNotFoundError: [Errno 2] No such file or directory: 'git'", "system: [git]"));
  FailedBuild bare;
  bare.compiler = false;
  EXPECT_TRUE(
      hints("'pkg-config' not found.\nCommand ['pkg-config', '--print-errors', "
            "'--exists', 'cairo >= 1.15.10']",
            "system: [build-essential, python3-dev, pkg-config, libcairo2-dev]", bare));
  EXPECT_TRUE(
      hints("/bin/sh: 1: pkg-config: not found\n\nTrying pkg-config --exists "
            "mysqlclient\nCommand 'pkg-config --exists mysqlclient' returned non-zero",
            "system: [pkg-config, default-libmysqlclient-dev]"));
  // Words that hold such a name, and programs that are there.
  EXPECT_EQ(hint_of("checking for digit: not found\ngcc: error: x.c: No such file").find("[git]"),
            std::string::npos);
}

TEST(BuildHint, WhatCMakeStoppedAtGoesBeforeWhatItLookedFor) {
  constexpr std::string_view kLooked = "-- Could not find nvcc\n-- Could NOT find MPI\n";
  const std::string old =
      std::string{kLooked} +
      "CMake Error at third_party/a/CMakeLists.txt:1 (cmake_minimum_required):\n"
      "  Compatibility with CMake < 3.5 has been removed from CMake.\n";
  EXPECT_TRUE(hints(old, "requires: {pkg: [\"cmake<4\"]}"));
  EXPECT_TRUE(hints(old, "env: {pkg: {CMAKE_POLICY_VERSION_MINIMUM: \"3.5\"}}"));
  FailedBuild with_cmake;
  with_cmake.tools = {"cmake", "ninja"};
  EXPECT_TRUE(hints(old, "constraints: [\"cmake<4\"]", with_cmake));
  EXPECT_TRUE(hints(
      std::string{kLooked} + "CMake Error at CMakeLists.txt:9 (message):\n  Could NOT find CUDA\n",
      "CUDA's compiler"));
  EXPECT_TRUE(hints("Failed to install temporary CMake. Please update your CMake to 3.13+",
                    "requires: {pkg: [cmake, ninja]}"));
}

TEST(BuildHint, HeadersAndLibraries) {
  EXPECT_TRUE(hints("src/x.c:2:10: fatal error: Python.h: No such file or directory",
                    "system: [build-essential, python3-dev]"));
  EXPECT_TRUE(hints("c/_cffi_backend.c:15:10: fatal error: ffi.h: No such file or directory",
                    "system: [libffi-dev]"));
  EXPECT_TRUE(
      hints("fatal error: openssl/opensslv.h: No such file or directory", "system: [libssl-dev]"));
  EXPECT_TRUE(hints("fatal error: 'portaudio.h' file not found", "system: [portaudio19-dev]"));
  EXPECT_TRUE(hints("fatal error: numpy/arrayobject.h: No such file or directory",
                    "requires: {pkg: [numpy]}"));
  EXPECT_TRUE(hints("fatal error: mystery.h: No such file or directory", "`mystery.h`"));
  EXPECT_TRUE(
      hints("/usr/bin/ld: cannot find -lssl: No such file or directory", "system: [libssl-dev]"));
  EXPECT_TRUE(hints("Package cairo was not found in the pkg-config search path.",
                    "system: [pkg-config, libcairo2-dev]"));
  EXPECT_TRUE(hints("No package 'libffi' found", "system: [pkg-config, libffi-dev]"));
}

TEST(BuildHint, WhatASourceIsKnownToNeedIsNamedAtOnce) {
  FailedBuild build;
  build.package = "pygraphviz";
  build.compiler = false;
  EXPECT_TRUE(hints("No such file or directory: 'x86_64-linux-gnu-gcc'",
                    "system: [build-essential, python3-dev, libgraphviz-dev]", build));
  EXPECT_TRUE(hints("fatal error: graphviz/cgraph.h: No such file or directory",
                    "system: [libgraphviz-dev]", build));
  build.package = "gdal";
  EXPECT_TRUE(hints("gdal-config: command not found",
                    "system: [build-essential, python3-dev, libgdal-dev]", build));
  build.package = "av";
  EXPECT_TRUE(hints("pkg-config is required for building PyAV",
                    "pkg-config, libavdevice-dev, libavfilter-dev", build));
}

TEST(BuildHint, CudaByItsRelease) {
  FailedBuild build;
  build.package = "flash-attn";
  const std::string_view said =
      "OSError: CUDA_HOME environment variable is not set. Please set it "
      "to your CUDA install root.";
  build.cuda = "13.0";
  EXPECT_TRUE(hints(said, "`libraries: {nvcc: true}`", build));
  EXPECT_TRUE(hints(said, "FLASH_ATTENTION_SKIP_CUDA_BUILD: \"TRUE\"", build));
  build.cuda = "12.4";
  EXPECT_TRUE(hints(said, "which Python packages hold from CUDA 13 on", build));
  EXPECT_TRUE(hints("fatal error: cuda_runtime.h: No such file or directory",
                    "needs CUDA's compiler", build));
}

TEST(BuildHint, ElseWhatHelpsOften) {
  EXPECT_TRUE(hints("it just does not work", "[build-essential, python3-dev]"));
}

}  // namespace
}  // namespace mlenv
