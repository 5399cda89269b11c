#pragma once
// What conda_names.txt does not tell of conda's names: written by hand.
#include <optional>
#include <string_view>

#include "recipes/init/conda_names.hpp"

namespace mlenv {

/// On PyPI, or in Debian; nullopt: neither, as far as this table knows.
std::optional<CondaName> conda_rename(std::string_view name);

}  // namespace mlenv
