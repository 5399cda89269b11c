#include "recipes/resolve/wheel_conflict.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/mistakes.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 3> kFrameworks = {"pytorch", "tensorflow", "jax"};

/// A requirement and the value of the recipe that it comes from.
struct Own {
  const Placed* place = nullptr;
  std::string name;  ///< normalised, as uv knows it
  bool framework = false;
};

std::vector<Own> own_requirements(const Recipe& recipe) {
  std::vector<const Placed*> places;
  if (recipe.framework) places.push_back(&*recipe.framework);
  for (const Placed& package : recipe.packages) places.push_back(&package);
  const std::vector<std::string> texts = framework_requirements(recipe).requirements;
  std::vector<Own> all;
  for (std::size_t i = 0; i < std::min(places.size(), texts.size()); ++i) {
    const auto read = parse_requirement(texts[i]);
    const auto* requirement = std::get_if<Requirement>(&read);
    if (requirement == nullptr) continue;
    all.push_back({places[i], requirement->normalised_name(), recipe.framework && i == 0});
  }
  return all;
}

bool is_name_char(char c) { return is_lower(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; }

/// Whether the name stands there as a whole word.
bool mentions(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_name_char(text[at - 1]);
    if (begins && (end == text.size() || !is_name_char(text[end]))) return true;
  }
  return false;
}

bool is_required(const Conflict& conflict, std::string_view name) {
  return std::any_of(conflict.facts.begin(), conflict.facts.end(), [&](std::string_view fact) {
    const std::size_t said = fact.find("you require");
    return said != std::string_view::npos && mentions(fact.substr(said), name);
  });
}

std::string shown(const Recipe& recipe, const Own& own, std::string_view more = {}) {
  return shown_mistake(recipe.path, recipe.source, own.place->line, own.place->column,
                       fmt::format("the recipe asks for `{}`{}", own.place->text, more));
}

}  // namespace

void show_requirements(Conflict& conflict, const Recipe& recipe) {
  std::vector<std::string> lines;
  for (const Own& own : own_requirements(recipe)) {
    if (is_required(conflict, own.name)) lines.push_back(shown(recipe, own));
  }
  conflict.facts.insert(conflict.facts.begin(), lines.begin(), lines.end());
}

std::vector<std::string> requirement_lines(const Recipe& recipe, const std::string& name) {
  std::vector<std::string> lines;
  for (const Own& own : own_requirements(recipe)) {
    if (own.name == name) lines.push_back(shown(recipe, own));
  }
  return lines;
}

Conflict absent_packages(const Recipe& recipe, const std::vector<std::string>& names) {
  Conflict conflict;
  conflict.headline = fmt::format("the Python indexes have no package{} `{}`",
                                  names.size() == 1 ? "" : "s", join(names, "`, `"));
  for (const Own& own : own_requirements(recipe)) {
    if (std::find(names.begin(), names.end(), own.name) == names.end()) continue;
    conflict.facts.push_back(
        shown(recipe, own, own.framework ? suggestion(own.name, kFrameworks) : std::string{}));
  }
  conflict.hint = fmt::format(
      "check {}, or add the index that has {} under `sources: {{pypi: […]}}`",
      names.size() == 1 ? "its name" : "their names", names.size() == 1 ? "it" : "them");
  return conflict;
}

}  // namespace mlenv
