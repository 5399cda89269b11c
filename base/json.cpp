#include "base/json.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace mlenv {

// nlohmann's default object is a std::map: keys come out sorted by bytes.
std::string canonical(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

nlohmann::json parse_json(std::string_view text, std::string_view what) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw failure("bad-json", "`{}` is not well-formed JSON", what).because(error.what());
  }
}

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace mlenv
