#pragma once
// Which frameworks and NVIDIA libraries an image holds, by its packages and the names of its files.
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "images/inspect/image_tree.hpp"

namespace mlenv {

/// A Python distribution that is installed: a folder `NAME-VERSION.dist-info` (or `.egg-info`).
struct PythonPackage {
  std::string name;  ///< normalised (PEP 503)
  std::string version;
  std::string site;  ///< folder that it is installed in
};
/// Sorted by site, name and version.
std::vector<PythonPackage> python_packages(const ImageTree& tree);

/// Frameworks with the CUDA release that they were built for.
std::vector<FrameworkBuild> frameworks_in(const ImageTree& tree,
                                          const std::vector<PythonPackage>& packages);

/// Files `STEM.so.*` (`libcudart`) with their versions: that of `package` (`nvidia-cuda-runtime`,
/// whatever suffix) in the same site, else the longest that a name of the file says.
std::vector<FoundLibrary> libraries_in(const ImageTree& tree,
                                       const std::vector<PythonPackage>& packages,
                                       std::string_view stem, std::string_view package);

/// Instructions that its frameworks and files are compiled for (cpu_needs.cpp has the data).
std::vector<CpuNeed> cpu_needs_of(const ImageTree& tree, std::uint64_t machine,
                                  const std::vector<PythonPackage>& packages);

/// Whether a library is one of NVIDIA's own, by its name.
bool is_nvidia_library(std::string_view path);
/// Whether it holds the kernels without which a framework can do nothing, by its name.
bool is_framework_kernels(std::string_view path);

/// Whether a run brings it from the host, with the GPU's driver.
bool is_from_driver(std::string_view library);

/// Numbers between dots compared as numbers: 2.9 is before 2.10.
bool is_older_version(std::string_view a, std::string_view b);

}  // namespace mlenv
