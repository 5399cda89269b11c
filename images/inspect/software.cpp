#include "images/inspect/software.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/paths.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

std::string normalised(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool is_separator = c == '-' || c == '_' || c == '.';
    if (!is_separator) {
      out += to_lower(c);
    } else if (!out.ends_with('-')) {
      out += '-';
    }
  }
  return out;
}

/// What stands between quotes behind the first `key`; empty when nothing does.
std::string quoted_after(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + key.size());
  rest = rest.substr(0, rest.find('\n'));
  const std::size_t begin = rest.find_first_of("'\"");
  if (begin == std::string_view::npos) return {};
  const std::size_t end = rest.find(rest[begin], begin + 1);
  return end == std::string_view::npos ? std::string{}
                                       : std::string(rest.substr(begin + 1, end - begin - 1));
}

/// `12.5.1` → `12.5`: a release has two parts.
std::string release_of(std::string_view version) {
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) return std::string(version);
  return std::string(version.substr(0, version.find('.', dot + 1)));
}

const std::string* text_at(const ImageTree& tree, const std::string& path) {
  const ImageTree::Node* node = tree.find(path);
  return node == nullptr ? nullptr : node->text;
}

/// torch/version.py: `cuda: Optional[str] = '13.2'`, or None.
std::string torch_cuda(const ImageTree& tree, const std::string& site) {
  const std::string* text = text_at(tree, below(site, "torch/version.py"));
  if (text == nullptr) return {};
  const std::size_t at = text->find("\ncuda");
  if (at == std::string::npos) return {};
  const std::string value = quoted_after(std::string_view(*text).substr(at), "=");
  return value.empty() ? "cpu" : value;
}

/// What stands behind a key of a dict, up to the pair's end: ` '12.5.1'` of `('cuda_version',
/// '12.5.1'), …`.
std::string_view value_of_pair(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  const std::string_view pair = rest.substr(0, rest.find(')'));
  return pair.substr(std::min<std::size_t>(pair.size(), 2));
}

/// tensorflow/python/platform/build_info.py: `OrderedDict([('is_cuda_build', True),
/// ('cuda_version', '12.5.1'), …])`.
std::string tensorflow_cuda(const ImageTree& tree, const std::string& site) {
  const std::string* text = text_at(tree, below(site, "tensorflow/python/platform/build_info.py"));
  if (text == nullptr) return {};
  const std::string version = quoted_after(value_of_pair(*text, "cuda_version"), "");
  if (!version.empty()) return release_of(version);
  return value_of_pair(*text, "is_cuda_build").find("False") == std::string_view::npos ? "" : "cpu";
}

/// The plugin's name has the CUDA major: jax-cuda13-plugin.
std::string jax_cuda(const std::vector<PythonPackage>& packages, const std::string& site) {
  constexpr std::string_view kBefore = "jax-cuda";
  constexpr std::string_view kBehind = "-plugin";
  for (const PythonPackage& one : packages) {
    const std::string_view name = one.name;
    if (one.site != site || !name.starts_with(kBefore) || !name.ends_with(kBehind)) continue;
    return std::string(name.substr(kBefore.size(), name.size() - kBefore.size() - kBehind.size()));
  }
  return "cpu";
}

/// `13.2.75` of `libcudart.so.13.2.75`.
std::string_view version_in_name(std::string_view name) {
  const std::size_t at = name.find(".so.");
  return at == std::string_view::npos ? std::string_view{} : name.substr(at + 4);
}

/// Of the package's versions in that site the one that fits the file's own number best.
std::string package_version(const std::vector<PythonPackage>& packages, std::string_view path,
                            std::string_view package, std::string_view number) {
  for (const PythonPackage& one : packages) {
    if (!is_beneath(path, one.site)) continue;
    const bool is_it = one.name == package || (one.name.starts_with(package) &&
                                               one.name.substr(package.size()).starts_with("-cu"));
    if (!is_it) continue;
    const bool fits = one.version == number || one.version.starts_with(std::string(number) + ".");
    if (fits) return one.version;
  }
  return {};
}

constexpr std::array<std::string_view, 32> kNvidiaLibraries = {
    "libcublas",     "libcudnn",       "libcufft",         "libcurand",     "libcusolver",
    "libcusparse",   "libnccl",        "libnpp",           "libnvjpeg",     "libnvrtc",
    "libnvJitLink",  "libnvshmem",     "libcutensor",      "libnvblas",     "libcupti",
    "libcufile",     "libcudart",      "libcuda.so",       "libnvinfer",    "libnvonnx",
    "libnvToolsExt", "libcudss",       "libcuquantum",     "libcustatevec", "libcutensornet",
    "libnvcomp",     "libnvtiff",      "libnvptxcompiler", "libnvidia-",    "libnvvm",
    "libcublasmp",   "libcaffe2_nvrtc"};

/// Where PyTorch (1.10's too), TensorFlow and JAX (XLA) have the kernels that every program of
/// theirs needs; read off torch 2.15.0, tensorflow 2.21.0 and jax-cuda13-pjrt 0.10.2.
constexpr std::array<std::string_view, 5> kFrameworkKernels = {
    "libtorch_cuda.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so", "libtensorflow_cc.so",
    "xla_cuda_plugin.so"};

constexpr std::array<std::string_view, 12> kDriverLibraries = {
    "libcuda.so.",          "libnvidia-",          "libnvcuvid.so.",    "libcudadebugger.so.",
    "libnvoptix.so.",       "libEGL_nvidia.so.",   "libGLX_nvidia.so.", "libGLESv1_CM_nvidia.so.",
    "libGLESv2_nvidia.so.", "libvdpau_nvidia.so.", "libnvidia_",        "libGLX_indirect.so."};

}  // namespace

bool is_nvidia_library(std::string_view path) {
  const std::string_view name = last_part(path);
  return path.find("/nvidia/") != std::string_view::npos ||
         std::any_of(kNvidiaLibraries.begin(), kNvidiaLibraries.end(),
                     [&](std::string_view known) { return name.starts_with(known); });
}

bool is_framework_kernels(std::string_view path) {
  const std::string_view name = last_part(path);
  return std::any_of(kFrameworkKernels.begin(), kFrameworkKernels.end(),
                     [&](std::string_view known) { return name.starts_with(known); });
}

bool is_from_driver(std::string_view library) {
  return std::any_of(kDriverLibraries.begin(), kDriverLibraries.end(),
                     [&](std::string_view known) { return library.starts_with(known); });
}

bool is_older_version(std::string_view a, std::string_view b) {
  const auto left = split(a, '.');
  const auto right = split(b, '.');
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    std::string_view x = left[i];
    std::string_view y = right[i];
    while (x.size() > 1 && x.front() == '0') x.remove_prefix(1);
    while (y.size() > 1 && y.front() == '0') y.remove_prefix(1);
    if (x == y) continue;
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  }
  return left.size() < right.size();
}

std::vector<PythonPackage> python_packages(const ImageTree& tree) {
  std::vector<PythonPackage> found;
  for (const auto& [path, node] : tree.nodes()) {
    const std::string_view name = last_part(path);
    std::string_view folder = folder_of(path);
    if (name.ends_with(".egg-info")) {
      folder = path;  // a file of its own
    } else if (name != "METADATA" && name != "PKG-INFO") {
      continue;
    }
    std::string_view stem = last_part(folder);
    const std::size_t end = stem.rfind('.');
    const std::string_view ending = end == std::string_view::npos ? "" : stem.substr(end);
    if (ending != ".dist-info" && ending != ".egg-info") continue;
    stem = stem.substr(0, end);
    const std::size_t dash = stem.find('-');
    if (dash == std::string_view::npos) continue;
    std::string_view version = stem.substr(dash + 1);
    version = version.substr(0, version.find("-py"));
    found.push_back(
        {normalised(stem.substr(0, dash)), std::string(version), std::string(folder_of(folder))});
  }
  std::sort(found.begin(), found.end(), [](const PythonPackage& a, const PythonPackage& b) {
    return std::tie(a.site, a.name, a.version) < std::tie(b.site, b.name, b.version);
  });
  return found;
}

std::vector<FrameworkBuild> frameworks_in(const ImageTree& tree,
                                          const std::vector<PythonPackage>& packages) {
  std::vector<FrameworkBuild> found;
  for (const PythonPackage& one : packages) {
    if (one.name == "torch") {
      const std::string* text = text_at(tree, below(one.site, "torch/version.py"));
      const std::string full = text == nullptr ? "" : quoted_after(*text, "__version__ =");
      found.push_back({"torch", full.empty() ? one.version : full, torch_cuda(tree, one.site)});
    } else if (one.name == "tensorflow" || one.name == "tensorflow-cpu") {
      found.push_back({"tensorflow", one.version, tensorflow_cuda(tree, one.site)});
    } else if (one.name == "jax") {
      found.push_back({"jax", one.version, jax_cuda(packages, one.site)});
    }
  }
  std::sort(found.begin(), found.end(), [](const FrameworkBuild& a, const FrameworkBuild& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<FoundLibrary> libraries_in(const ImageTree& tree,
                                       const std::vector<PythonPackage>& packages,
                                       std::string_view stem, std::string_view package) {
  std::map<std::string, std::string> versions;  // by true path
  const std::string first = std::string(stem) + ".so";
  for (const auto& [path, node] : tree.nodes()) {
    const std::string_view name = last_part(path);
    if (name != first && !name.starts_with(first + ".")) continue;
    const auto real = tree.resolve(path);
    if (!real || tree.nodes().find(*real)->second.elf == nullptr) continue;
    std::string& version = versions[*real];
    const std::string_view said = version_in_name(name);
    if (said.size() > version.size()) version = said;
  }
  std::vector<FoundLibrary> found;
  for (const auto& [path, version] : versions) {
    const std::string better = package_version(packages, path, package, version);
    found.push_back({"/" + path, better.empty() ? version : better});
  }
  return found;
}

}  // namespace mlenv
