#include "recipes/resolve/wheel_conflict.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/mistakes.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/popular_names.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 3> kFrameworkNames = {"pytorch", "tensorflow", "jax"};

/// A requirement and where it is asked for.
struct Own {
  std::string name;  ///< normalised, as uv knows it
  bool framework = false;
  const Placed* place = nullptr;       ///< in the recipe; or
  const ListedText* listed = nullptr;  ///< in a file that it names
};

std::vector<Own> own_requirements(const Recipe& recipe) {
  std::vector<Own> all;
  if (recipe.framework) all.push_back({{}, true, &*recipe.framework, nullptr});
  for (const Placed& package : recipe.packages) all.push_back({{}, false, &package, nullptr});
  for (const ListedText& one : recipe.listed.requirements)
    all.push_back({{}, false, nullptr, &one});
  const std::vector<std::string> texts = framework_requirements(recipe).requirements;
  for (std::size_t i = 0; i < std::min(all.size(), texts.size()); ++i) {
    all[i].name = package_of_requirement(texts[i]);
  }
  return all;
}

std::vector<Own> own_constraints(const Recipe& recipe) {
  std::vector<Own> all;
  for (const ListedText& one : recipe.listed.constraints) {
    all.push_back({package_of_requirement(one.text), false, nullptr, &one});
  }
  return all;
}

bool is_normalised_char(char c) {
  return is_lower(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
}

/// Whether the name stands there as a whole word.
bool mentions(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !is_normalised_char(text[at - 1]);
    if (begins && (end == text.size() || !is_normalised_char(text[end]))) return true;
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
  if (own.listed != nullptr) {
    return own.listed->shown(fmt::format("it asks for `{}`", own.listed->text));
  }
  return shown_mistake(recipe.path, recipe.source, own.place->line, own.place->column,
                       fmt::format("the recipe asks for `{}`{}", own.place->text, more));
}

}  // namespace

bool speaks_of(const Conflict& conflict, std::string_view name) {
  if (mentions(conflict.told, name)) return true;
  return std::any_of(conflict.facts.begin(), conflict.facts.end(),
                     [&](const std::string& fact) { return mentions(fact, name); });
}

void show_requirements(Conflict& conflict, const Recipe& recipe,
                       const std::vector<std::string>& direct) {
  const auto counts = [&](const std::string& name) {
    if (is_required(conflict, name)) return true;
    return std::find(direct.begin(), direct.end(), name) != direct.end() &&
           speaks_of(conflict, name);
  };
  std::vector<std::string> lines;
  for (const auto& all : {own_requirements(recipe), own_constraints(recipe)}) {
    for (const Own& own : all) {
      if (counts(own.name)) lines.push_back(shown(recipe, own));
    }
  }
  conflict.facts.insert(conflict.facts.begin(), lines.begin(), lines.end());
}

std::vector<std::string> requirement_lines(const Recipe& recipe, const std::string& name) {
  std::vector<std::string> lines;
  for (const auto& all : {own_requirements(recipe), own_constraints(recipe)}) {
    for (const Own& own : all) {
      if (own.name == name) lines.push_back(shown(recipe, own));
    }
  }
  return lines;
}

std::string hint_of_absent(const std::vector<std::string>& names) {
  std::vector<std::string> meant;
  for (const std::string& name : names) {
    if (std::string near = meant_package(name); !near.empty()) meant.push_back(std::move(near));
  }
  const bool one = names.size() == 1;
  return fmt::format(
      "{}check {}, or add the index that has {} under `sources: {{pypi: […]}}`",
      meant.empty() ? "" : fmt::format("did you mean `{}`? Else ", join(meant, "`, `")),
      one ? "its name" : "their names", one ? "it" : "them");
}

Conflict absent_packages(const Recipe& recipe, const std::vector<std::string>& names) {
  Conflict conflict;
  conflict.headline = fmt::format("the Python indexes have no package{} `{}`",
                                  names.size() == 1 ? "" : "s", join(names, "`, `"));
  for (const Own& own : own_requirements(recipe)) {
    if (std::find(names.begin(), names.end(), own.name) == names.end()) continue;
    conflict.facts.push_back(
        shown(recipe, own, own.framework ? suggestion(own.name, kFrameworkNames) : std::string{}));
  }
  conflict.hint = hint_of_absent(names);
  return conflict;
}

}  // namespace mlenv
