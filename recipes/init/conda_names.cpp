#include "recipes/init/conda_names.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "base/inflate.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct CondaRename {
  std::string_view conda;
  std::string_view name;
  bool brought_along = false;
};

/// Where the table has another name than the one that people want, or none: packages that only name
/// others, and channels other than conda-forge.
constexpr std::array<CondaRename, 53> kOnPypi = {
    {{"pytorch", "torch"},
     {"pytorch-gpu", "torch"},
     {"pytorch-cpu", "torch"},
     {"pytorch-nightly", "torch"},
     {"torchvision-cpu", "torchvision"},
     {"torchaudio-cpu", "torchaudio"},
     {"torchtriton", "triton"},
     {"ignite", "pytorch-ignite"},
     {"pyg", "torch-geometric"},
     {"pytorch-scatter", "torch-scatter"},
     {"pytorch-sparse", "torch-sparse"},
     {"pytorch-cluster", "torch-cluster"},
     {"pytorch-spline-conv", "torch-spline-conv"},
     {"tensorflow-gpu", "tensorflow"},
     {"tensorflow-cpu", "tensorflow-cpu"},
     {"tensorflow-base", "tensorflow"},
     {"tensorflow-mkl", "tensorflow"},
     {"tensorflow-eigen", "tensorflow"},
     {"keras-gpu", "keras"},
     {"keras-base", "keras"},
     {"opencv", "opencv-python-headless"},
     {"opencv3", "opencv-python-headless"},
     {"py-opencv", "opencv-python-headless"},
     {"matplotlib-base", "matplotlib"},
     {"seaborn-base", "seaborn"},
     {"dask-core", "dask"},
     {"scikit-learn-intelex", "scikit-learn-intelex"},
     {"msgpack-python", "msgpack"},
     {"pytables", "tables"},
     {"python-graphviz", "graphviz"},
     {"python-igraph", "igraph"},
     {"faiss", "faiss-cpu"},
     {"faiss-cpu", "faiss-cpu"},
     {"faiss-gpu", "faiss-gpu"},
     {"py-xgboost", "xgboost"},
     {"py-xgboost-cpu", "xgboost"},
     {"py-xgboost-gpu", "xgboost"},
     {"ray-core", "ray"},
     {"ray-default", "ray[default]"},
     {"ray-tune", "ray[tune]"},
     {"ray-rllib", "ray[rllib]"},
     {"ray-serve", "ray[serve]"},
     {"ray-data", "ray[data]"},
     {"ray-train", "ray[train]"},
     {"ray-all", "ray[all]"},
     {"uvicorn-standard", "uvicorn[standard]"},
     {"vtk", "vtk"},
     {"mujoco", "mujoco"},
     {"pytensor", "pytensor"},
     {"pyav", "av"},
     {"pyqt", "pyqt5"},
     {"antlr4-python3-runtime", "antlr4-python3-runtime"},
     {"pyrealsense2", "pyrealsense2"}}};

/// Programs, and libraries that programs look for by name, which are Debian's here.
constexpr std::array<CondaRename, 94> kInDebian = {{{"gcc", "gcc"},
                                                    {"gxx", "g++"},
                                                    {"gcc_linux-64", "gcc"},
                                                    {"gxx_linux-64", "g++"},
                                                    {"gfortran", "gfortran"},
                                                    {"gfortran_linux-64", "gfortran"},
                                                    {"c-compiler", "gcc"},
                                                    {"cxx-compiler", "g++"},
                                                    {"fortran-compiler", "gfortran"},
                                                    {"compilers", "build-essential gfortran"},
                                                    {"clang", "clang"},
                                                    {"make", "make"},
                                                    {"cmake", "cmake"},
                                                    {"ninja", "ninja-build"},
                                                    {"autoconf", "autoconf"},
                                                    {"automake", "automake"},
                                                    {"libtool", "libtool"},
                                                    {"m4", "m4"},
                                                    {"bison", "bison"},
                                                    {"flex", "flex"},
                                                    {"swig", "swig"},
                                                    {"nasm", "nasm"},
                                                    {"yasm", "yasm"},
                                                    {"patchelf", "patchelf"},
                                                    {"pkg-config", "pkg-config"},
                                                    {"ccache", "ccache"},
                                                    {"gdb", "gdb"},
                                                    {"valgrind", "valgrind"},
                                                    {"doxygen", "doxygen"},
                                                    {"rust", "rustc cargo"},
                                                    {"go", "golang-go"},
                                                    {"ruby", "ruby"},
                                                    {"perl", "perl", true},
                                                    {"git", "git"},
                                                    {"git-lfs", "git-lfs"},
                                                    {"subversion", "subversion"},
                                                    {"curl", "curl", true},
                                                    {"wget", "wget"},
                                                    {"aria2", "aria2"},
                                                    {"rsync", "rsync"},
                                                    {"openssh", "openssh-client"},
                                                    {"openssl", "openssl", true},
                                                    {"sqlite", "sqlite3", true},
                                                    {"tk", "python3-tk", true},
                                                    {"jq", "jq"},
                                                    {"parallel", "parallel"},
                                                    {"ripgrep", "ripgrep"},
                                                    {"tree", "tree"},
                                                    {"less", "less"},
                                                    {"vim", "vim"},
                                                    {"nano", "nano"},
                                                    {"emacs", "emacs-nox"},
                                                    {"tmux", "tmux"},
                                                    {"screen", "screen"},
                                                    {"htop", "htop"},
                                                    {"zip", "zip"},
                                                    {"unzip", "unzip"},
                                                    {"unrar", "unrar-free"},
                                                    {"p7zip", "p7zip-full"},
                                                    {"pigz", "pigz"},
                                                    {"ffmpeg", "ffmpeg"},
                                                    {"sox", "sox"},
                                                    {"libsndfile", "libsndfile1", true},
                                                    {"portaudio", "portaudio19-dev", true},
                                                    {"imagemagick", "imagemagick"},
                                                    {"graphviz", "graphviz"},
                                                    {"ghostscript", "ghostscript"},
                                                    {"poppler", "poppler-utils"},
                                                    {"tesseract", "tesseract-ocr"},
                                                    {"pandoc", "pandoc", true},
                                                    {"texlive-core", "texlive-latex-base"},
                                                    {"mesalib", "libgl1-mesa-dri libosmesa6"},
                                                    {"libglu", "libglu1-mesa", true},
                                                    {"glfw", "libglfw3"},
                                                    {"glew", "libglew-dev"},
                                                    {"freeglut", "freeglut3-dev"},
                                                    {"eigen", "libeigen3-dev", true},
                                                    {"boost", "libboost-all-dev", true},
                                                    {"boost-cpp", "libboost-all-dev", true},
                                                    {"gsl", "libgsl-dev", true},
                                                    {"fftw", "libfftw3-dev", true},
                                                    {"geos", "libgeos-dev", true},
                                                    {"libaio", "libaio-dev", true},
                                                    {"gperftools", "libgoogle-perftools4"},
                                                    {"jemalloc", "libjemalloc2", true},
                                                    {"numactl", "numactl"},
                                                    {"openmpi", "openmpi-bin libopenmpi-dev"},
                                                    {"mpich", "mpich libmpich-dev"},
                                                    {"openjdk", "default-jdk-headless"},
                                                    {"java-jdk", "default-jdk-headless"},
                                                    {"maven", "maven"},
                                                    {"nodejs", "nodejs"},
                                                    {"redis-server", "redis-server"},
                                                    {"samtools", "samtools"}}};

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
constexpr std::array<std::string_view, 33> kNeedless = {"pip",
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
  CondaTable() : text_(unpacked()) {
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

  static std::string unpacked() {
    const std::string_view packed = packed_conda_names();
    // The last four bytes of a gzip file are its size (RFC 1952, ISIZE).
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      size = size << 8U | static_cast<unsigned char>(packed[packed.size() - 1 - i]);
    }
    std::string text(size, '\0');
    gunzip_member(std::as_bytes(std::span(packed)), std::as_writable_bytes(std::span(text)));
    return text;
  }

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

template <std::size_t N>
const CondaRename* renamed(const std::array<CondaRename, N>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const CondaRename& one) { return one.conda == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

CondaName conda_name(std::string_view name) {
  if (const CondaRename* one = renamed(kOnPypi, name)) {
    return {CondaKind::python, std::string(one->name)};
  }
  if (const CondaRename* one = renamed(kInDebian, name)) {
    return {CondaKind::system, std::string(one->name), one->brought_along};
  }
  if (is_among(kNeedless, name)) return {CondaKind::needless};
  if (is_among(kOfWindows, name)) return {CondaKind::windows};
  if (std::any_of(kWindowsFamilies.begin(), kWindowsFamilies.end(),
                  [&](std::string_view begin) { return name.starts_with(begin); })) {
    return {CondaKind::windows};
  }
  if (name == "r" || name.starts_with("r-")) return {CondaKind::r};
  if (is_among(kCondaLibraries, name)) return {CondaKind::library};
  if (name.starts_with("dgl-cuda")) return {CondaKind::python, "dgl"};
  static const CondaTable table;
  if (const std::string* other = table.python(name)) return {CondaKind::python, *other};
  if (table.is_none(name)) return {CondaKind::library};
  const std::string normalised = normalise_wheel_name(name);
  if (const std::string* same = table.python(normalised)) return {CondaKind::python, *same};
  return {begins_or_ends(name) ? CondaKind::library : CondaKind::unknown};
}

}  // namespace mlenv
