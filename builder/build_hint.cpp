#include "builder/build_hint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>

#include <fmt/core.h>

#include "builder/debian_files.hpp"
#include "builder/module_distributions.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Hint = std::optional<std::string>;

bool says(const FailedBuild& build, std::string_view text) {
  return build.said.find(text) != std::string_view::npos;
}

bool says_any(const FailedBuild& build, std::initializer_list<std::string_view> texts) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](std::string_view text) { return says(build, text); });
}

bool has_tool(const FailedBuild& build, std::string_view name) {
  return std::find(build.tools.begin(), build.tools.end(), name) != build.tools.end();
}

std::string named(const FailedBuild& build) {
  return build.package.empty() ? "NAME" : build.package;
}

std::string requiring(const FailedBuild& build, std::string_view what) {
  return fmt::format("`build: {{requires: {{{}: [{}]}}}}`", named(build), what);
}

std::string constrained(std::string_view what) {
  return fmt::format("`build: {{constraints: [\"{}\"]}}`", what);
}

std::string with_variable(const FailedBuild& build, std::string_view name, std::string_view value) {
  return fmt::format("`build: {{env: {{{}: {{{}: \"{}\"}}}}}}`", named(build), name, value);
}

std::string on_system(std::string_view packages) { return fmt::format("`system: [{}]`", packages); }

/// What stands between `before` and one of `ends` at the last place where `before` does.
std::string_view last_between(std::string_view text, std::string_view before,
                              std::string_view ends) {
  const std::size_t at = text.rfind(before);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + before.size());
  return text.substr(0, std::min(text.find_first_of(ends), text.size()));
}

// --- Python's side -------------------------------------------------------------------------------

Hint git_version(const FailedBuild& build) {
  if (!says(build, "unable to detect version")) return std::nullopt;
  return "its version comes from git, and a build sees no `.git`: give its setuptools-scm a "
         "`fallback_version`, or write the version down";
}

/// What newer releases of build tools no longer take.
Hint older_tool(const FailedBuild& build) {
  struct Complaint {
    std::string_view said;
    std::string_view what;
    std::string_view constraint;
  };
  constexpr auto kComplaints = std::to_array<Complaint>({
      {"use_2to3 is invalid", "`use_2to3` went with setuptools 58", "setuptools<58"},
      {"'extras_require' must be a dictionary",
       "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66"},
      {"'install_requires' must be a string",
       "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66"},
      {"'python_requires' must be a string",
       "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66"},
      {"'tests_require' must be a string",
       "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66"},
      {"packaging.version.InvalidVersion",
       "its version is none by PEP 440, which setuptools asks since 66", "setuptools<66"},
      {"extern.packaging.version.InvalidVersion",
       "its version is none by PEP 440, which setuptools asks since 66", "setuptools<66"},
      {"packaging.requirements.InvalidRequirement",
       "its requirements are none by PEP 508, which wheel asks since 0.40", "wheel<0.40"},
      {"No module named 'pkg_resources'", "`pkg_resources` went with setuptools 82",
       "setuptools<81"},
      {"from 'pkg_resources'", "it takes from `pkg_resources` what that no longer has",
       "setuptools<70"},
      {"module 'pkg_resources' has no attribute",
       "it takes from `pkg_resources` what that no longer has", "setuptools<70"},
      {"No module named 'setuptools.command.test'", "`setup.py test` went with setuptools 72",
       "setuptools<72"},
      {"No module named 'distutils.msvccompiler'",
       "`distutils.msvccompiler` went with setuptools 74", "setuptools<74"},
      {"cannot import name 'msvccompiler'", "`distutils.msvccompiler` went with setuptools 74",
       "setuptools<74"},
      {"from 'setuptools.command.", "it takes from setuptools what that no longer has",
       "setuptools<72"},
      {"No module named 'setuptools._distutils", "it takes from setuptools what is its own matter",
       "setuptools<60"},
      {"No module named 'wheel.bdist_wheel'", "`wheel.bdist_wheel` went with wheel 0.46",
       "wheel<0.46"},
  });
  for (const Complaint& one : kComplaints) {
    if (!says(build, one.said)) continue;
    const std::string_view tool = one.constraint.substr(0, one.constraint.find('<'));
    if (!build.tools.empty() && !has_tool(build, tool)) {
      return fmt::format("{}: {}", one.what,
                         requiring(build, fmt::format("\"{}\"", one.constraint)));
    }
    return fmt::format("{}: {}", one.what, constrained(one.constraint));
  }
  return std::nullopt;
}

/// setuptools' own distutils against Debian's changes of Python's.
Hint install_layout(const FailedBuild& build) {
  if (!says(build, "install_layout")) return std::nullopt;
  return "that setuptools does not go with Debian's Python: " +
         with_variable(build, "SETUPTOOLS_USE_DISTUTILS", "stdlib") + ", or a newer setuptools";
}

Hint python_2(const FailedBuild& build) {
  if (!says_any(build, {"Missing parentheses in call to 'print'", "except Exception, ",
                        "No module named 'ConfigParser'", "No module named 'urllib2'",
                        "No module named '__builtin__'", "name 'execfile' is not defined"})) {
    return std::nullopt;
  }
  return "it was written for Python 2: choose a newer version of it, or leave it out";
}

/// Names in quotes, as Python says them; of several the last.
std::string missing_module(const FailedBuild& build) {
  for (const std::string_view quote : {"'", "\""}) {
    const std::string before = fmt::format("No module named {}", quote);
    const std::string_view name = last_between(build.said, before, quote);
    if (!name.empty()) return std::string(name);
  }
  return std::string(last_between(build.said, "No module named ", " \n\r"));
}

Hint undeclared_module(const FailedBuild& build) {
  const std::string module = missing_module(build);
  if (module.empty()) return std::nullopt;
  if (module.starts_with("numpy.distutils") && has_tool(build, "numpy")) {
    return "`numpy.distutils` went with Python 3.12: choose a newer version of it, or an older "
           "`python`";
  }
  if (module == "distutils" || module.starts_with("distutils.")) {
    return fmt::format("Python 3.12 has no `distutils`, setuptools brings one: {}",
                       requiring(build, "setuptools"));
  }
  if (module == "tkinter" || module == "_tkinter") {
    return "Debian keeps `tkinter` apart: " + on_system("python3-tk");
  }
  const std::string_view dropped = dropped_from_python(module);
  if (!dropped.empty()) {
    return fmt::format(
        "Python {} has no `{}` any more: choose a newer version of it, or an older `python`",
        dropped, module);
  }
  const std::string_view distribution = distribution_of_module(module);
  if (!distribution.empty()) {
    return fmt::format("its build uses `{}` and does not declare it: {}", module,
                       requiring(build, distribution));
  }
  return fmt::format(
      "its build uses `{}` and does not declare it: name the package that has it, as in {}", module,
      requiring(build, "numpy"));
}

// --- the world's side ----------------------------------------------------------------------------

Hint network(const FailedBuild& build) {
  if (build.network) return std::nullopt;
  const bool asked =
      says_any(build, {"Temporary failure in name resolution", "Name or service not known",
                       "Network is unreachable", "Could not resolve host",
                       "Failed to establish a new connection", "[Errno 101]", "[Errno -2]",
                       "[Errno -3]", "urlopen error", "getaddrinfo failed", "dns error",
                       "failed to download from", "Could not resolve hostname", "ENOTFOUND",
                       "EAI_AGAIN", "offline mode", "network was disabled"});
  const bool pip = says_any(build, {"No matching distribution found for",
                                    "Could not find a version that satisfies the requirement"});
  if (!asked && !pip) return std::nullopt;
  std::string hint =
      "builds have no network, and this one asks for it: `build: {network: true}` gives it the "
      "machine's";
  if (pip) {
    const std::string_view wanted =
        last_between(build.said, "No matching distribution found for ", " \n\r");
    if (!wanted.empty()) {
      hint += fmt::format("; or, if it installs `{0}` to build with it, {1}", wanted,
                          requiring(build, fmt::format("\"{}\"", wanted)));
    }
  }
  return hint;
}

std::string_view skipped_by(const FailedBuild& build, std::string_view& value) {
  struct Skip {
    std::string_view package;
    std::string_view name;
    std::string_view value;
  };
  constexpr auto kSkips = std::to_array<Skip>({
      {"flash-attn", "FLASH_ATTENTION_SKIP_CUDA_BUILD", "TRUE"},
      {"deepspeed", "DS_BUILD_OPS", "0"},
      {"causal-conv1d", "CAUSAL_CONV1D_SKIP_CUDA_BUILD", "TRUE"},
      {"mamba-ssm", "MAMBA_SKIP_CUDA_BUILD", "TRUE"},
  });
  for (const Skip& one : kSkips) {
    if (one.package != build.package) continue;
    value = one.value;
    return one.name;
  }
  return {};
}

Hint cuda_compiler(const FailedBuild& build) {
  if (!says_any(build, {"CUDA_HOME", "nvcc", "CUDA_PATH",
                        "cuda.h:", "cuda_runtime.h:", "cuda_runtime_api.h:", "cublas_v2.h:",
                        "cusparse.h:", "cudnn.h:", "Could NOT find CUDA", "No CUDA toolset found",
                        "CMAKE_CUDA_COMPILER", "CUDA_TOOLKIT_ROOT_DIR"})) {
    return std::nullopt;
  }
  std::string hint;
  if (!build.cuda.empty() && wheels_hold_nvcc(build.cuda)) {
    hint =
        "it needs CUDA's compiler: `libraries: {nvcc: true}` gives it to the image and to builds";
  } else {
    const std::string release = build.cuda.empty() ? "11 and 12" : version_prefix(build.cuda, 1);
    hint = fmt::format(
        "it needs CUDA's compiler, which the Python packages of CUDA {} do not hold: take a wheel "
        "that its project offers (`find-links`), `system: [nvidia-cuda-toolkit]` of Debian's "
        "non-free, or with a framework for CUDA 13 `libraries: {{nvcc: true}}`",
        release);
  }
  std::string_view value;
  const std::string_view name = skipped_by(build, value);
  if (!name.empty()) hint += "; or build it without: " + with_variable(build, name, value);
  return hint;
}

Hint header(const FailedBuild& build) {
  std::string_view name = last_between(build.said, "fatal error: ", ":\n");
  const bool clang = name.starts_with('\'');
  if (clang) name = name.substr(1, name.find('\'', 1) - 1);
  if (name.empty() || name.find(' ') != std::string_view::npos) return std::nullopt;
  if (!clang && !says(build, fmt::format("{}: No such file", name))) return std::nullopt;
  for (const std::string_view own : {"numpy", "torch", "pybind11"}) {
    if (!name.starts_with(fmt::format("{}/", own))) continue;
    return fmt::format("the header `{}` comes with {}: {}", name, own, requiring(build, own));
  }
  const std::string_view package = package_of_header(name);
  if (package == "python3-dev") {
    return fmt::format("it compiles against Python: {}", on_system("build-essential, python3-dev"));
  }
  if (!package.empty()) {
    return fmt::format("the header `{}` is in a Debian package: {}", name,
                       on_system(fmt::format("{}", package)));
  }
  return fmt::format(
      "the header `{}` is missing: name the Debian package that has it under `system` "
      "(`apt-file search {}` finds it)",
      name, name);
}

Hint rust(const FailedBuild& build) {
  if (says_any(build, {"requires rustc", "rustc version", "is not supported by the following",
                       "lock file version", "edition2024", "newer version of Cargo"}) &&
      says_any(build, {"rustc", "argo"})) {
    return "it needs a newer Rust than the base has: a newer `base` (`debian:trixie`), or "
           "`system: [cargo-web, rustc-web]` on bookworm, with `build: {network: true}` for crates";
  }
  if (!says_any(build, {"can't find Rust compiler", "Rust toolchain", "rust compiler",
                        "Rust compiler", "`rustc`", "'rustc'", "'cargo'", "`cargo`", "Cargo, the",
                        "cargo: not found", "rustup"})) {
    return std::nullopt;
  }
  return "it needs Rust: `system: [cargo]`, and, as cargo fetches crates, `build: {network: true}`";
}

bool is_in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '+' ||
         c == '.';
}

/// Whether the output has it in one of the ways in which shells, Python and build tools say that a
/// program is not there.
bool lacks_program(const FailedBuild& build, std::string_view name) {
  constexpr auto kWays =
      std::to_array<std::string_view>({"No such file or directory: '{}'",
                                       "command '{}' failed: No such file",
                                       "unable to execute '{}'",
                                       "{}: not found",
                                       "{}: command not found",
                                       "'{}' not found",
                                       "`{}' not found",
                                       "`{}` not found",
                                       "\"{}\" not found",
                                       "{} not found",
                                       "{} executable not found",
                                       "Could not find {}",
                                       "could not find {}",
                                       "Cannot find {}",
                                       "cannot find {}",
                                       "Could NOT find {}",
                                       "failed to execute {}",
                                       "No {} found",
                                       "{} is not installed",
                                       "program '{}'",
                                       "linker `{}`",
                                       "{} is required",
                                       "Program {} found: NO",
                                       "command '/usr/bin/{}' failed: No such file"});
  for (const std::string_view way : kWays) {
    const std::string text = fmt::format(fmt::runtime(way), name);
    for (std::size_t at = build.said.find(text); at != std::string_view::npos;
         at = build.said.find(text, at + 1)) {
      const std::size_t name_at = at + way.find('{');
      const char before = name_at == 0 ? ' ' : build.said[name_at - 1];
      const std::size_t end = name_at + name.size();
      const char after = end < build.said.size() ? build.said[end] : ' ';
      if (!is_in_word(before) && (after == '.' || !is_in_word(after))) return true;
    }
  }
  return false;
}

Hint build_program(const FailedBuild& build) {
  if (lacks_program(build, "cmake") || lacks_program(build, "CMake")) {
    return "it needs CMake: " + requiring(build, "cmake, ninja");
  }
  if (lacks_program(build, "ninja")) return "it needs ninja: " + requiring(build, "ninja");
  if (lacks_program(build, "cython")) return "it needs Cython: " + requiring(build, "Cython");
  for (const std::string_view name :
       {"mpicc",       "mpicxx",      "mpic++",       "mpirun",      "pg_config",   "mysql_config",
        "curl-config", "xml2-config", "xslt-config",  "gdal-config", "geos-config", "krb5-config",
        "nc-config",   "sdl2-config", "mecab-config", "swig",        "gfortran",    "f77",
        "f95",         "git",         "pkg-config",   "protoc",      "autoreconf",  "autoconf",
        "automake",    "libtoolize",  "libtool",      "bison",       "flex",        "node",
        "npm",         "go",          "javac",        "java",        "clang++",     "clang",
        "patch",       "unzip"}) {
    if (!lacks_program(build, name)) continue;
    return fmt::format("it runs `{}`, which is in a Debian package: {}", name,
                       on_system(package_of_program(name)));
  }
  if (lacks_program(build, "llvm-config") || says(build, "llvm-config")) {
    return "it needs LLVM's files of one release: `system: [llvm-14-dev]` or the one that it "
           "names; mostly a version with a wheel for this Python is meant";
  }
  return std::nullopt;
}

Hint fortran(const FailedBuild& build) {
  if (!says_any(build, {"no Fortran compiler", "No Fortran compiler", "Fortran compiler not found",
                        "CMAKE_Fortran_COMPILER", "['gfortran'], ['flang']"})) {
    return std::nullopt;
  }
  return "it needs a Fortran compiler: " + on_system("build-essential, gfortran");
}

Hint compiler(const FailedBuild& build) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"gcc", "g++", "cc", "c++", "make", "ld", "x86_64-linux-gnu-gcc", "x86_64-linux-gnu-g++",
       "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++"});
  const bool missing =
      std::any_of(kNames.begin(), kNames.end(),
                  [&](std::string_view name) { return lacks_program(build, name); }) ||
      says_any(build, {"CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER", "Unknown compiler(s)",
                       "Unsupported compiler -- at least", "no acceptable C compiler",
                       "C compiler cannot create executables", "CMAKE_MAKE_PROGRAM"});
  if (!missing) return std::nullopt;
  return "it needs a compiler: " + on_system("build-essential, python3-dev");
}

Hint pkg_config_module(const FailedBuild& build) {
  std::string_view name = last_between(build.said, "No package '", "'");
  if (name.empty()) {
    const std::string_view line = last_between(build.said, "Package ", " \n");
    if (says(build, fmt::format("Package {} was not found in the pkg-config", line))) name = line;
  }
  if (name.empty()) {
    const std::string_view line = last_between(build.said, "Dependency \"", "\"");
    if (says(build, "not found, tried pkgconfig")) name = line;
  }
  if (name.empty()) return std::nullopt;
  const std::string_view package = package_of_module(name);
  if (!package.empty()) {
    return fmt::format("the library `{}` is in a Debian package: {}", name,
                       on_system(fmt::format("pkg-config, {}", package)));
  }
  return fmt::format(
      "the library `{0}` is missing: name the Debian package with `{0}.pc` under `system`", name);
}

Hint library(const FailedBuild& build) {
  const std::string_view name = last_between(build.said, "cannot find -l", ": \n\r");
  if (name.empty()) return std::nullopt;
  const std::string_view package = package_of_library(name);
  if (!package.empty()) {
    return fmt::format("the library `{}` is in a Debian package: {}", name, on_system(package));
  }
  return fmt::format(
      "the library `{}` is missing: name the Debian package with `lib{}.so` under `system`", name,
      name);
}

}  // namespace

std::string build_hint(const FailedBuild& build) {
  for (const auto find : {git_version, older_tool, install_layout, python_2, undeclared_module,
                          network, cuda_compiler, header, rust, fortran, pkg_config_module,
                          build_program, compiler, library}) {
    if (Hint hint = find(build)) return *std::move(hint);
  }
  return fmt::format(
      "a compiler or headers that it needs can be added under `system`, as in "
      "`[build-essential, python3-dev]`; packages that it uses and does not declare as in {}",
      requiring(build, "numpy"));
}

}  // namespace mlenv
