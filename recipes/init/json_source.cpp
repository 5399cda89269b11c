#include "recipes/init/json_source.hpp"

#include <nlohmann/json.hpp>

namespace mlenv {

std::string json_text(const nlohmann::json& in, const char* key) {
  if (!in.is_object()) return {};
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace mlenv
