#include "recipes/init/json_source.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_depth.hpp"

namespace mlenv {

nlohmann::json json_of(const ConversionSource& source, std::string_view text) {
  if (!is_too_deep(text)) {
    nlohmann::json root = nlohmann::json::parse(text, nullptr, false);
    if (root.is_object()) return root;
  }
  throw usage_error("source-invalid", "`{}` is no JSON object, or nests too deeply", source.shown);
}

std::string json_text(const nlohmann::json& in, const char* key) {
  if (!in.is_object()) return {};
  const auto found = in.find(key);
  return found != in.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace mlenv
