#pragma once
// What a misspelt name of a Python package may have meant. Only names that many people use are ever
// proposed: an index has somebody's project under most misspellings.
#include <string>
#include <string_view>

namespace mlenv {

/// The distribution that has a module of that name (`skimage` → `scikit-image`), else the nearest
/// of the most used names: at most two edits away (a swap of neighbours is one), and fewer than a
/// third of its letters; of equally near ones the most used. Empty: none, or it is one itself.
std::string meant_package(std::string_view name);

}  // namespace mlenv
