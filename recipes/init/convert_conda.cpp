// Conda environments (conda's documentation, "Managing environments"; package names as conda-forge
// has them).
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/yaml_source.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct Rename {
  std::string_view conda;
  std::string_view name;
};
/// What is called otherwise on Python's index.
constexpr std::array<Rename, 16> kPython = {{{"pytorch", "torch"},
                                             {"pytorch-gpu", "torch"},
                                             {"pytorch-cpu", "torch"},
                                             {"tensorflow-gpu", "tensorflow"},
                                             {"tensorflow-base", "tensorflow"},
                                             {"opencv", "opencv-python-headless"},
                                             {"py-opencv", "opencv-python-headless"},
                                             {"matplotlib-base", "matplotlib"},
                                             {"seaborn-base", "seaborn"},
                                             {"dask-core", "dask"},
                                             {"msgpack-python", "msgpack"},
                                             {"pytables", "tables"},
                                             {"huggingface_hub", "huggingface-hub"},
                                             {"python-graphviz", "graphviz"},
                                             {"pytorch-lightning", "pytorch-lightning"},
                                             {"faiss", "faiss-cpu"}}};
/// Programs, which are Debian's here.
constexpr std::array<Rename, 26> kSystem = {{{"gcc", "gcc"},
                                             {"gxx", "g++"},
                                             {"gcc_linux-64", "gcc"},
                                             {"gxx_linux-64", "g++"},
                                             {"c-compiler", "gcc"},
                                             {"cxx-compiler", "g++"},
                                             {"compilers", "build-essential"},
                                             {"gfortran", "gfortran"},
                                             {"make", "make"},
                                             {"cmake", "cmake"},
                                             {"ninja", "ninja-build"},
                                             {"git", "git"},
                                             {"git-lfs", "git-lfs"},
                                             {"curl", "curl"},
                                             {"wget", "wget"},
                                             {"ffmpeg", "ffmpeg"},
                                             {"graphviz", "graphviz"},
                                             {"openmpi", "openmpi-bin"},
                                             {"mpich", "mpich"},
                                             {"nodejs", "nodejs"},
                                             {"openssh", "openssh-client"},
                                             {"pandoc", "pandoc"},
                                             {"rsync", "rsync"},
                                             {"tmux", "tmux"},
                                             {"unzip", "unzip"},
                                             {"htop", "htop"}}};

template <std::size_t N>
std::string_view pypi_name(const std::array<Rename, N>& names, std::string_view name) {
  for (const Rename& one : names) {
    if (one.conda == name) return one.name;
  }
  return {};
}

/// A conda specification: `channel::name=version=build`, `name >=1,<2`.
struct Spec {
  std::string channel;
  std::string name;
  std::string version;  ///< as conda writes it: `=1.2`, `>=1,<2`, `1.2.*`
  std::string build;
};

Spec spec_of(std::string_view text) {
  Spec spec;
  const std::size_t channel = text.find("::");
  if (channel != std::string_view::npos) {
    spec.channel = text.substr(0, channel);
    text.remove_prefix(channel + 2);
  }
  const std::size_t end = text.find_first_of(" =<>!~[");
  spec.name = text.substr(0, end);
  if (end == std::string_view::npos) return spec;
  std::string_view rest = trim(text.substr(end));
  // `name=1.2=build` and `name 1.2 build`
  const std::size_t start = std::min(rest.find_first_not_of("=<>!~ "), rest.size());
  const std::size_t build = rest.find_first_of("= ", start);
  const bool list = rest.find(',') != std::string_view::npos;
  if (build != std::string_view::npos && !list) {
    spec.build = trim(rest.substr(build + 1));
    rest = trim(rest.substr(0, build));
  }
  for (const char c : rest) {
    if (c != ' ') spec.version += c;
  }
  return spec;
}

/// The same in PEP 440's words; nullopt where it has none.
std::optional<std::string> specifier_of(const std::string& version) {
  if (version.find_first_of("|[(") != std::string::npos) return std::nullopt;
  if (version.empty() || version == "*" || version == "=*") return "";
  if (version.front() == '=' && !version.starts_with("==")) {
    const std::string number = version.substr(1);
    return number.ends_with('*') ? "==" + number : fmt::format("=={}.*", number);
  }
  if (is_digit(version.front())) return "==" + version;
  return version;
}

class Conda {
 public:
  Conda(const ConversionSource& source, Conversion& to)
      : source_(source), yaml_(source, to), to_(to) {}

  void convert() {
    const YamlNode& root = yaml_.root();
    if (const YamlNode* name = YamlSource::find(root, "name")) {
      to_.draft.name = image_name_from(name->text);
    }
    if (const YamlNode* all = YamlSource::find(root, "dependencies")) {
      for (const YamlNode& item : all->items) dependency(item);
    } else {
      to_.leave_out({source_.shown, 1}, "dependencies",
                    "there is no such key: is it an environment of conda?");
    }
    if (const YamlNode* variables = YamlSource::find(root, "variables")) {
      for (const YamlMember& one : variables->members) {
        to_.env(yaml_.place(one.key), one.key.text, one.value.text);
      }
    }
    if (const YamlNode* channels = YamlSource::find(root, "channels")) {
      yaml_.leave_out(*channels, "channels: " + YamlSource::shown(*channels),
                      "packages are Python's (from its index) and Debian's here");
    }
    yaml_.leave_out_others(root, {"name", "dependencies", "variables", "channels"});
  }

 private:
  void dependency(const YamlNode& item) {
    if (item.kind == YamlNode::Kind::scalar) return package(yaml_.place(item), item.text);
    for (const YamlMember& member : item.members) {
      if (member.key.text != "pip") {
        yaml_.leave_out(member.key, member.key.text, "only `pip` has a list of its own");
        continue;
      }
      for (const YamlNode* one : yaml_.texts(member.value, "pip")) pip(*one);
    }
  }

  void pip(const YamlNode& item) {
    if (!item.text.starts_with('-')) return to_.python_package(yaml_.place(item), item.text);
    const std::size_t blank = item.text.find_first_of(" =");
    const std::string name = item.text.substr(0, blank);
    const std::string value(
        blank == std::string::npos ? "" : trim(std::string_view(item.text).substr(blank + 1)));
    const fs::path path = source_.path.parent_path() / value;
    std::error_code unknown;
    if ((name == "-r" || name == "--requirement") && fs::is_regular_file(path, unknown)) {
      return to_.requirements(path, path.lexically_normal().string(),
                              read_small_file(path, size_limit::kConverted));
    }
    if (name == "-i" || name == "--index-url")
      return to_.python_index(yaml_.place(item), value, true);
    if (name == "--extra-index-url") return to_.python_index(yaml_.place(item), value, false);
    const bool listed = name == "-r" || name == "--requirement";
    yaml_.leave_out(item, item.text,
                    listed
                        ? "there is no such file here"
                        : "options of pip count in a requirements file that `requirements` names");
  }

  void package(const SourcePlace& place, const std::string& text) {
    const Spec spec = spec_of(text);
    const std::string number =
        spec.version.substr(std::min(spec.version.find_first_not_of("=<>!~"), spec.version.size()));
    if (!spec.build.empty() || !spec.channel.empty()) {
      to_.leave_out(place, text, "channel and build are conda's");
    }
    if (spec.name == "python") return python(place, spec, number);
    if (spec.name == "cudatoolkit" || spec.name == "pytorch-cuda" || spec.name == "cuda-version" ||
        spec.name == "cuda-toolkit" || spec.name == "cuda") {
      return number.empty() ? to_.leave_out(place, text, "it names no release")
                            : to_.cuda_release(place, number);
    }
    if (spec.name == "pip" || spec.name == "setuptools" || spec.name == "wheel") {
      return to_.leave_out(place, text, "not needed: mlenv installs wheels itself");
    }
    if (spec.name == "r-base" || spec.name.starts_with("r-")) {
      return to_.leave_out(place, text,
                           "R and its packages: Debian's are called `r-base` and `r-cran-…`, and "
                           "can stand in `system`");
    }
    if (spec.name == "cudnn" || spec.name == "nccl" || spec.name == "mkl" ||
        spec.name == "cpuonly" || spec.name.starts_with("lib") || spec.name.starts_with('_')) {
      return to_.leave_out(place, text, "a library of conda's: wheels bring their own");
    }
    const std::string_view system = pypi_name(kSystem, spec.name);
    if (!system.empty()) {
      if (!spec.version.empty())
        to_.leave_out(place, text, "the version is the one that Debian has");
      return to_.system_package(place, system);
    }
    python_package(place, text, spec);
  }

  void python(const SourcePlace& place, const Spec& spec, const std::string& number) {
    if (spec.version.empty()) return;
    const std::optional<std::string> specifier = specifier_of(spec.version);
    const bool exact = spec.version.find_first_of("<>!~|,") == std::string::npos;
    if (exact) return to_.python_version(place, number);
    if (!specifier)
      return to_.leave_out(place, "python" + spec.version,
                           "alternatives have no words in a recipe");
    to_.python_range(place, *specifier);
  }

  void python_package(const SourcePlace& place, const std::string& text, const Spec& spec) {
    const std::string_view other = pypi_name(kPython, spec.name);
    const std::optional<std::string> specifier = specifier_of(spec.version);
    if (!specifier)
      return to_.leave_out(place, text, "a version in words that Python's index does not have");
    to_.python_package(
        place, std::string(other.empty() ? std::string_view(spec.name) : other) + *specifier);
  }

  const ConversionSource& source_;
  YamlSource yaml_;
  Conversion& to_;
};

}  // namespace

void convert_conda(const ConversionSource& source, Conversion& to) { Conda(source, to).convert(); }

}  // namespace mlenv
