#pragma once
// What an `import` statement can take of the packages in an image's environment, as their RECORDs
// say: read from the unpacked layers, without running anything of the image.
#include <string>
#include <string_view>
#include <vector>

#include "builder/run/layer_stack.hpp"

namespace mlenv {

/// Names of a RECORD, sorted: the shortest packages (`google.cloud.storage` where `google` is a
/// namespace), and modules beside them. Not private ones, nor folders that are a project's own
/// (`tests`, `docs`).
std::vector<std::string> top_levels(std::string_view record);

struct ImportablePackage {
  std::string name;     ///< normalised
  std::string version;  ///< as its folder has it
  std::vector<std::string> imports;
  /// Past the bound (64) of one package.
  std::size_t left_out = 0;
  /// Normalised names of what its extras alone require.
  std::vector<std::string> of_extras{};
  /// The first import of each package that requires this one; at most three.
  std::vector<std::string> hosts{};
};

/// Of /opt/venv, those of `first` first, in their order, the others by name. What two packages
/// bring is the first one's.
std::vector<ImportablePackage> importable_packages(LayerStack& image,
                                                   const std::vector<std::string>& first);

}  // namespace mlenv
