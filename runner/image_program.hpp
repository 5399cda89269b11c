#pragma once
// Programs as a container of an image finds them.
#include <optional>
#include <string>
#include <string_view>

#include "images/oci.hpp"
#include "images/stacked_trees.hpp"

namespace mlenv {

/// Absolute path of the first program of that name in the image's PATH; nullopt: there is none.
std::optional<std::string> program_in_image(const ImageConfig& image, const StackedTrees& files,
                                            std::string_view name);

}  // namespace mlenv
