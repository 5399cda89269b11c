#pragma once
// JSON of other tools: what is asked for is found where it has the wanted kind.
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace mlenv {

/// Empty where `in` has no such text.
std::string json_text(const nlohmann::json& in, const char* key);

}  // namespace mlenv
