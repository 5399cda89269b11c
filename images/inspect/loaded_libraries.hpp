#pragma once
// Libraries that an image's Python sources load by name and that no file of the image is.
#include <cstdint>
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "images/inspect/image_tree.hpp"

namespace mlenv {

/// By name. Known are libraries that people load so (loaded_libraries.cpp has them) and full
/// sonames; a package may bring its own copy, whatever it is called. Those that a package is a
/// binding of, or that importing it loads without an alternative, are wanted; others `optional`,
/// and of these the known ones alone. NVIDIA's libraries and drivers' are not among them.
std::vector<MissingLibrary> missing_loaded_libraries(const ImageTree& tree);

}  // namespace mlenv
