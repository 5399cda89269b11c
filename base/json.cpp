#include "base/json.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_depth.hpp"

namespace mlenv {

// nlohmann's default object is a std::map: keys come out sorted by bytes.
std::string canonical(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool is_too_deep(std::string_view json) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

std::size_t json_values(std::string_view json) {
  std::size_t values = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == ',' || c == '[' || c == '{')) ++values;
  }
  return values;
}

nlohmann::json parse_json(std::string_view text, std::string_view what) {
  if (is_too_deep(text)) {
    throw failure("bad-json", "`{}` is not JSON that mlenv reads", what)
        .because(fmt::format("lists and maps lie in each other more than {} deep", kDeepestJson));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw failure("bad-json", "`{}` is not well-formed JSON", what).because(error.what());
  }
}

std::string cbor_bytes(const nlohmann::json& value) {
  const std::vector<std::uint8_t> cbor = nlohmann::json::to_cbor(value);
  return {cbor.begin(), cbor.end()};
}

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

nlohmann::json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::json() : nlohmann::json(text);
}

}  // namespace mlenv
