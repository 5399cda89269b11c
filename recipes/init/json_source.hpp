#pragma once
// JSON of other tools: what is asked for is found where it has the wanted kind.
#include <string>

#include <nlohmann/json.hpp>

namespace mlenv {

/// Empty where `in` has no such text.
inline std::string json_text(const nlohmann::json& in, const char* key) {
  if (!in.is_object()) return {};
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace mlenv
