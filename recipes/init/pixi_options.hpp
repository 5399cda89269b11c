#pragma once
// `pypi-options` of a Pixi manifest: where Python's packages come from and how they are chosen.
#include "recipes/init/converters.hpp"
#include "recipes/toml.hpp"

namespace mlenv {

void pixi_indexes(const ConversionSource& source, const TomlValue& options, Conversion& to);
/// All but indexes.
void pixi_options(const ConversionSource& source, const TomlValue& options, Conversion& to);

}  // namespace mlenv
