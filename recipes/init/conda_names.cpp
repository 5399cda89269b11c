#include "recipes/init/conda_names.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "recipes/init/conda_renames.hpp"
#include "recipes/packed_tables.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Libraries of channels other than conda-forge, and what comes with wheels in another way.
constexpr std::array<std::string_view, 27> kCondaLibraries = {
    "numpy-base",  "mkl-service",     "mkl_fft",      "mkl_random",
    "blas",        "cudnn",           "nccl",         "cutensor",
    "cpuonly",     "pytorch-mutex",   "libopencv",    "nvidia-apex",
    "cub",         "ffmpeg-base",     "intel-openmp", "tbb4py",
    "jpeg",        "cudatoolkit-dev", "snappy",       "xxhash",
    "lmdb",        "brotli",          "python_abi",   "tzdata",
    "flatbuffers", "pthread-stubs",   "cuda-compiler"};
/// Tools of conda's own, and backports of what Python has had since 3.7.
constexpr std::array<std::string_view, 35> kNeedless = {"nb_conda",
                                                        "nb_conda_kernels",
                                                        "pip",
                                                        "setuptools",
                                                        "wheel",
                                                        "conda",
                                                        "mamba",
                                                        "micromamba",
                                                        "conda-build",
                                                        "conda-package-handling",
                                                        "conda-libmamba-solver",
                                                        "conda-pack",
                                                        "conda-lock",
                                                        "conda-env",
                                                        "conda-token",
                                                        "conda-repo-cli",
                                                        "conda-content-trust",
                                                        "conda-verify",
                                                        "conda-merge",
                                                        "anaconda",
                                                        "anaconda-client",
                                                        "anaconda-navigator",
                                                        "anaconda-project",
                                                        "navigator-updater",
                                                        "_anaconda_depends",
                                                        "python.app",
                                                        "dataclasses",
                                                        "enum34",
                                                        "futures",
                                                        "typing",
                                                        "contextvars",
                                                        "backports",
                                                        "backports_abc",
                                                        "pathlib",
                                                        "argparse"};
constexpr std::array<std::string_view, 12> kOfWindows = {
    "pywin32",      "pypiwin32",           "pywinpty", "winpty",         "win_inet_pton",
    "wincertstore", "win_unicode_console", "vc",       "vs2015_runtime", "ucrt",
    "menuinst",     "m2w64-gcc-libs"};
constexpr std::array<std::string_view, 4> kWindowsFamilies = {"m2w64-", "msys2-", "m2-", "vs20"};
/// Of names that the table does not have.
constexpr std::array<std::string_view, 35> kLibraryFamilies = {
    "_",        "lib",     "perl-",   "ros-",           "xorg-",     "xcb-",   "font-",
    "fonts-",   "go-",     "gcc_",    "gxx_",           "gfortran_", "clang",  "llvm",
    "binutils", "ld_impl", "sysroot", "kernel-headers", "cuda-",     "magma",  "gst-",
    "qt6-",     "aws-c-",  "rust-",   "cudatoolkit",    "vc14",      "rb-",    "ruby-",
    "vim-",     "gz-",     "go_",     "cross-python",   "m2-",       "m2w64-", "msys2-"};
constexpr std::array<std::string_view, 15> kLibraryEndings = {
    "-devel",    "-static",        "-dev",          "-cpp",  "-headers",
    "_linux-64", "_linux-aarch64", "-conda-x86_64", "-bin",  "-data",
    "-doc",      "-docs",          "-include",      "-test", "-tests"};

class CondaTable {
 public:
  CondaTable() : text_(conda_names_table()) {
    Section section = Section::none;
    for (const std::string_view line : split(text_, '\n')) {
      if (line.empty() || line.front() == '#') continue;
      if (line == "[same]") {
        section = Section::same;
      } else if (line == "[other]") {
        section = Section::other;
      } else if (line == "[none]") {
        section = Section::none;
      } else {
        add(section, line);
      }
    }
  }

  const std::string* python(std::string_view name) const {
    const auto found = python_.find(std::string(name));
    return found == python_.end() ? nullptr : &found->second;
  }
  bool is_none(std::string_view name) const {
    const auto found = none_.find(std::string(name));
    return found != none_.end();
  }

 private:
  enum class Section { same, other, none };

  void add(Section section, std::string_view line) {
    const std::vector<std::string_view> words = split(line, ' ');
    if (section == Section::other) {
      python_.emplace(words.front(), words.back());
      return;
    }
    // `azure-: ai batch`
    const std::string_view begin = words.front().substr(0, words.front().size() - 1);
    for (auto word = words.begin() + 1; word != words.end(); ++word) {
      std::string name = std::string(begin) + std::string(*word);
      if (section == Section::none) {
        none_.emplace(std::move(name), true);
      } else {
        name = normalise_wheel_name(name);
        python_.emplace(name, name);
      }
    }
  }

  std::string text_;
  std::unordered_map<std::string, std::string> python_;
  std::unordered_map<std::string, bool> none_;
};

bool begins_or_ends(std::string_view name) {
  const auto begins = [&](std::string_view begin) { return name.starts_with(begin); };
  const auto ends = [&](std::string_view end) { return name.ends_with(end); };
  return std::any_of(kLibraryFamilies.begin(), kLibraryFamilies.end(), begins) ||
         std::any_of(kLibraryEndings.begin(), kLibraryEndings.end(), ends);
}

}  // namespace

CondaName conda_name(std::string_view name) {
  if (auto known = conda_rename(name)) return *std::move(known);
  if (is_among(kNeedless, name)) return {CondaKind::needless};
  if (is_among(kOfWindows, name)) return {CondaKind::windows};
  if (std::any_of(kWindowsFamilies.begin(), kWindowsFamilies.end(),
                  [&](std::string_view begin) { return name.starts_with(begin); })) {
    return {CondaKind::windows};
  }
  if (name == "r" || name.starts_with("r-")) return {CondaKind::r};
  if (is_among(kCondaLibraries, name)) return {CondaKind::library};
  static const CondaTable table;
  if (const std::string* other = table.python(name)) return {CondaKind::python, *other};
  if (table.is_none(name)) return {CondaKind::library};
  const std::string normalised = normalise_wheel_name(name);
  if (const std::string* same = table.python(normalised)) return {CondaKind::python, *same};
  return {begins_or_ends(name) ? CondaKind::library : CondaKind::unknown};
}

}  // namespace mlenv
