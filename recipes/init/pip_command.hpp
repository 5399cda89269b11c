#pragma once
// `pip install`, `pip install -r`, `uv pip sync` of a build.
#include <span>
#include <string>

#include "recipes/init/converters.hpp"

namespace mlenv {

/// `words` are those behind the program: `install -U numpy`.
void convert_pip_command(const InstallCommand& command, std::span<const std::string> words,
                         const FindFile& file, Conversion& to);

}  // namespace mlenv
