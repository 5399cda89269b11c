#pragma once
// JSON of other tools: what is asked for is found where it has the wanted kind.
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "recipes/init/converters.hpp"

namespace mlenv {

/// A source as JSON. Throws `source-invalid` for what is no JSON object, or nests too deeply.
nlohmann::json json_of(const ConversionSource& source, std::string_view text);

/// Empty where `in` has no such text.
std::string json_text(const nlohmann::json& in, const char* key);

}  // namespace mlenv
