#pragma once
// `apt-get install` of a build.
#include <span>
#include <string>

#include "recipes/init/converters.hpp"

namespace mlenv {

/// `words` are those behind the program: `install -y git`. A package of an archive that no
/// distribution has is told; `python3.9` is the recipe's `python`.
void convert_apt_command(const InstallCommand& command, std::span<const std::string> words,
                         Conversion& to);

}  // namespace mlenv
