#include "recipes/init/known_repositories.hpp"

#include <array>
#include <utility>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// As their own installation pages name them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kRepositories = {
    {{"pytorch3d", "facebookresearch/pytorch3d.git@stable"},
     {"detectron2", "facebookresearch/detectron2.git"},
     {"apex", "NVIDIA/apex.git"},
     {"nvidia-apex", "NVIDIA/apex.git"},
     {"clip", "openai/CLIP.git"},
     {"panopticapi", "cocodataset/panopticapi.git"},
     {"nvdiffrast", "NVlabs/nvdiffrast.git"},
     {"segment-anything", "facebookresearch/segment-anything.git"},
     {"taming-transformers", "CompVis/taming-transformers.git"}}};

}  // namespace

std::string repository_of_package(std::string_view name) {
  const std::string wanted = normalise_wheel_name(name);
  for (const auto& [package, repository] : kRepositories) {
    if (normalise_wheel_name(package) == wanted) {
      return "git+https://github.com/" + std::string(repository);
    }
  }
  return {};
}

}  // namespace mlenv
