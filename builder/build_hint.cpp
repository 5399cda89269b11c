#include "builder/build_hint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "builder/build_hint_parts.hpp"
#include "builder/debian_files.hpp"
#include "recipes/apt_words.hpp"
#include "recipes/compat/cuda_releases.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace hints {
namespace {

/// Of builds that look for a finished wheel first, and end where there is no network.
std::string_view forced_by(const FailedBuild& build) {
  constexpr auto kForces = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"flash-attn", "FLASH_ATTENTION_FORCE_BUILD"},
       {"causal-conv1d", "CAUSAL_CONV1D_FORCE_BUILD"},
       {"mamba-ssm", "MAMBA_FORCE_BUILD"}});
  for (const auto& [package, name] : kForces) {
    if (package == build.package) return name;
  }
  return {};
}

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
  const std::string_view force = forced_by(build);
  if (!force.empty() && says(build, "wheel URL")) {
    hint +=
        "; or keep it from looking for a finished wheel: " + with_variable(build, force, "TRUE");
  }
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
  if (has_tool(build, "nvidia-cuda-nvcc")) return std::nullopt;  // something else went wrong
  std::string hint;
  if (!build.cuda.empty() && wheels_hold_nvcc(build.cuda)) {
    hint =
        "it needs CUDA's compiler: `libraries: {nvcc: true}` gives it to the image and to builds";
  } else {
    hint = fmt::format(
        "it needs CUDA's compiler, which Python packages hold from CUDA 13 on: with a framework "
        "for "
        "that `libraries: {{nvcc: true}}`; or take a wheel that its project offers: `index: {{{}: "
        "{{find-links: URL}}}}`",
        build.package.empty() ? "PACKAGE" : build.package);
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
    return fmt::format("it compiles against Python: {}",
                       on_system_with_needs(build, "build-essential, python3-dev"));
  }
  if (!package.empty()) {
    return fmt::format("the header `{}` is in a Debian package: {}", name,
                       on_system_with_needs(build, package));
  }
  return fmt::format(
      "the header `{}` is missing: name the Debian package that has it under `system` "
      "(`apt-file search {}` finds it)",
      name, name);
}

/// What compiles against a library needs a compiler, too.
std::string with_compiler(const FailedBuild& build, const std::string& packages) {
  return build.compiler ? packages : "build-essential, python3-dev, " + packages;
}

/// What it tells people to install itself.
Hint apt_words(const FailedBuild& build) {
  const std::vector<std::string> packages = packages_of_apt_words(build.said);
  if (packages.empty()) return std::nullopt;
  const std::string names = join(packages, ", ");
  const bool compiler = std::any_of(packages.begin(), packages.end(), [](const std::string& one) {
    return one == "build-essential" || one == "gcc";
  });
  return "it asks for Debian packages: " +
         on_system(compiler ? names : with_compiler(build, names));
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
                                       "Cannot find '{}'",
                                       "cannot find '{}'",
                                       "Could not find '{}'",
                                       "could not find '{}'",
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

/// `, libcairo2-dev`: of what a build would have asked pkg-config.
std::string asked_module(const FailedBuild& build) {
  std::string_view name = last_between(build.said, "--exists ", " '\n");
  if (name.empty()) name = last_between(build.said, "'--exists', '", " '");
  const std::string_view package = package_of_module(name);
  return package.empty() ? std::string{} : fmt::format(", {}", package);
}

Hint build_program(const FailedBuild& build) {
  if (lacks_program(build, "cmake") || lacks_program(build, "CMake") ||
      says_any(build, {"your CMake", "temporary CMake", "install CMake", "nstall cmake",
                       "CMake must be installed"})) {
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
    std::string packages{package_of_program(name)};
    if (name == "pkg-config") packages += asked_module(build);
    return fmt::format("it runs `{}`, which is in a Debian package: {}", name,
                       on_system_with_needs(build, with_compiler(build, packages)));
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
  return "it needs a compiler: " + on_system_with_needs(build, "build-essential, python3-dev");
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
    return fmt::format(
        "the library `{}` is in a Debian package: {}", name,
        on_system_with_needs(build, with_compiler(build, fmt::format("pkg-config, {}", package))));
  }
  return fmt::format(
      "the library `{0}` is missing: name the Debian package with `{0}.pc` under `system`", name);
}

Hint library(const FailedBuild& build) {
  const std::string_view name = last_between(build.said, "cannot find -l", ": \n\r");
  if (name.empty()) return std::nullopt;
  const std::string_view package = package_of_library(name);
  if (!package.empty()) {
    return fmt::format("the library `{}` is in a Debian package: {}", name,
                       on_system_with_needs(build, package));
  }
  return fmt::format(
      "the library `{}` is missing: name the Debian package with `lib{}.so` under `system`", name,
      name);
}

/// A variable that it asks for: of the image, or one that it says is not set.
Hint variable(const FailedBuild& build) {
  for (const auto& [name, value] : build.image_env) {
    constexpr std::size_t kTelling = 4;  // shorter names stand in any text
    if (name.size() < kTelling || !says(build, name)) continue;
    return "`env` is the image's, and builds have their own: " + with_variable(build, name, value);
  }
  constexpr std::string_view kNot = " is not set";
  const std::size_t at = build.said.rfind(kNot);
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t start = at;
  while (start > 0 && (std::isupper(static_cast<unsigned char>(build.said[start - 1])) != 0 ||
                       is_digit(build.said[start - 1]) || build.said[start - 1] == '_')) {
    --start;
  }
  const std::string_view name = build.said.substr(start, at - start);
  if (name.find('_') == std::string_view::npos) return std::nullopt;
  return "it wants a variable: " + with_variable(build, name, "…");
}

/// CMake 4 does not read what was written for CMake 3.4 and older.
Hint newer_cmake(const FailedBuild& build) {
  static constexpr std::string_view kOldCmake = "cmake<4";
  if (!says(build, "Compatibility with CMake < 3.5 has been removed")) return std::nullopt;
  const std::string older = has_tool(build, "cmake") ? constrained(build, {&kOldCmake, 1})
                                                     : requiring(build, "\"cmake<4\"");
  return fmt::format("it was written for an older CMake: {}; or {}", older,
                     with_variable(build, "CMAKE_POLICY_VERSION_MINIMUM", "3.5"));
}

/// The first that finds something.
Hint found_by_any(const FailedBuild& build) {
  for (const auto find : {newer_cmake, of_python, network, cuda_compiler, header, apt_words, rust,
                          fortran, pkg_config_module, build_program, compiler, library, variable}) {
    if (Hint hint = find(build)) return hint;
  }
  return std::nullopt;
}

}  // namespace

std::string any(const FailedBuild& build) {
  // CMake looks for much that it can do without, and says so: what it stopped at goes first.
  FailedBuild stopped = build;
  const std::size_t error = build.said.find("CMake Error");
  if (error != std::string_view::npos) stopped.said.remove_prefix(error);
  if (Hint hint = found_by_any(stopped)) return *std::move(hint);
  if (Hint hint = found_by_any(build)) return *std::move(hint);
  return fmt::format(
      "a compiler or headers that it needs can be added under `system`, as in "
      "`[build-essential, python3-dev]`; packages that it uses and does not declare as in {}",
      requiring(build, "numpy"));
}

}  // namespace hints

std::string build_hint(const FailedBuild& build) { return hints::any(build); }

Remedy remedy_of_build_hint(std::string_view hint) {
  for (const std::string_view choice : {"network: true", "as in", " or "}) {
    if (hint.find(choice) != std::string_view::npos) return {};
  }
  if (!hint.ends_with('`')) return {};
  std::string_view line = hint.substr(0, hint.size() - 1);
  line.remove_prefix(line.rfind('`') + 1);
  const std::size_t begin = line.find('[');
  const std::size_t end = line.rfind(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  std::vector<std::string> items;
  for (std::string_view one : split(line.substr(begin + 1, end - begin - 1), ',')) {
    one = trim(one);
    if (one.size() > 2 && one.starts_with('"') && one.ends_with('"')) {
      one = one.substr(1, one.size() - 2);
    }
    if (!one.empty()) items.emplace_back(one);
  }
  const std::string_view key = line.substr(0, begin);
  constexpr std::string_view kRequires = "build: {requires: {";
  if (items.empty()) return {};
  if (key == "system: ") return {{"system", std::move(items)}};
  if (key == "build: {constraints: ") return {{"build.constraints", std::move(items)}};
  if (!key.starts_with(kRequires) || !key.ends_with(": ")) return {};
  const std::string_view package = key.substr(kRequires.size(), key.size() - kRequires.size() - 2);
  return {{fmt::format("build.requires.{}", package), std::move(items)}};
}

}  // namespace mlenv
