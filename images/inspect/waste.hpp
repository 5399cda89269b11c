#pragma once
// Bytes of an image that a container never sees or never needs.
#include <vector>

#include "images/inspect/image_facts.hpp"
#include "images/inspect/image_tree.hpp"

namespace mlenv {

/// By kind, sorted; kinds of which there is nothing are left out.
std::vector<Waste> waste_in(const ImageTree& tree);

}  // namespace mlenv
