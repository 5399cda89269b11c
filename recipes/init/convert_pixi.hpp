#pragma once
// Pixi's files: `pixi.toml`, and `pixi.lock` with what the manifest beside it says of the rest.
#include "recipes/init/converters.hpp"

namespace mlenv {

/// Of a manifest all but its packages, which a lock has: its name, variables, CUDA and how packages
/// are chosen.
void convert_pixi_settings(const ConversionSource& source, Conversion& to);
void convert_pixi_lock(const ConversionSource& source, Conversion& to);

}  // namespace mlenv
