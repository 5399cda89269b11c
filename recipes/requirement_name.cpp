#include "recipes/requirement_name.hpp"

#include "recipes/text.hpp"

namespace mlenv {

std::string name_of_requirement(std::string_view text) {
  text = trim(text);
  return normalise_wheel_name(text.substr(0, text.find_first_of(" \t\r[(=<>!~;@")));
}

}  // namespace mlenv
