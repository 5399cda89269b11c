#include "recipes/recipe_change.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include <fmt/core.h>

#include "base/error.hpp"
#include "recipes/list_edit.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe_edit.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// The keys behind which `cuda` goes, as docs/recipe.md orders them.
constexpr std::array<std::string_view, 4> kChangeAnchors = {"name", "base", "python", "framework"};
/// And those behind which `constraints` does.
constexpr std::array<std::string_view, 6> kConstraintAnchors = {"name",      "base", "python",
                                                                "framework", "cuda", "packages"};
constexpr std::array<std::string_view, 3> kDemands = {"driver", "gpus", "libraries"};

std::optional<NamedFramework> framework_in(const std::string& text, bool in_packages) {
  auto read = parse_requirement(text);
  auto* requirement = std::get_if<Requirement>(&read);
  if (requirement == nullptr || !requirement->address.empty()) return std::nullopt;
  std::string name = requirement->normalised_name();
  if (name == "pytorch") name = "torch";
  if (name == "tensorflow-cpu") name = "tensorflow";
  if (name != "torch" && name != "tensorflow" && name != "jax") return std::nullopt;
  return NamedFramework{std::move(name), std::move(*requirement), in_packages};
}

/// The requirement as the change has it. JAX's extra names the major version of CUDA.
Requirement changed(const NamedFramework& named, const RecipeChange& change) {
  Requirement requirement = named.requirement;
  if (!change.framework.empty()) requirement.specifier = change.framework;
  if (change.cuda.empty() || change.cuda == "cpu") return requirement;
  for (std::string& extra : requirement.extras) {
    if (!extra.starts_with("cuda") || !all_digits(std::string_view(extra).substr(4))) continue;
    extra = "cuda" + change.cuda.substr(0, change.cuda.find('.'));
  }
  return requirement;
}

class RecipeText {
 public:
  explicit RecipeText(const Recipe& recipe) : recipe_(recipe), text_(recipe.source) {}

  void set(std::string_view key, std::string_view value) {
    take(key, ListEdit(text_, key).set(value, kChangeAnchors));
  }
  void append(std::string_view key, std::string_view item,
              std::span<const std::string_view> anchors = kChangeAnchors) {
    take(key, ListEdit(text_, key).append(item, anchors));
  }
  void remove(std::string_view key) { take(key, ListEdit(text_, key).remove_key()); }
  const std::string& str() const { return text_; }

  Error unknown_layout(std::string_view key) const {
    return failure("recipe-layout", "`{}` writes `{}` in a way that mlenv cannot change",
                   recipe_.path.string(), key)
        .hint("make the change in the file, then run `mlenv lock`");
  }

 private:
  void take(std::string_view key, std::optional<std::string> text) {
    if (!text) throw unknown_layout(key);
    const YamlDocument document = parse_yaml(*text);
    if (!document.complete || !document.mistakes.empty()) throw unknown_layout(key);
    text_ = *std::move(text);
  }

  const Recipe& recipe_;
  std::string text_;
};

bool has_demand(const Recipe& recipe, std::string_view key) {
  if (key == "driver") return recipe.driver.has_value();
  if (key == "gpus") return !recipe.gpus.empty();
  return !recipe.libraries.empty() || recipe.compiler;
}

/// As `recipe` is to ask after the change.
Recipe expected(Recipe recipe, const RecipeChange& change,
                const std::optional<NamedFramework>& named) {
  if (named && !named->in_packages) recipe.framework->text = changed(*named, change).str();
  if (!change.cuda.empty()) recipe.cuda = Placed{.text = change.cuda};
  if (!change.driver.empty()) recipe.driver = Placed{.text = change.driver};
  for (const std::string& gpu : change.gpus) recipe.gpus.push_back({.text = gpu});
  if (change.no_demands) {
    recipe.driver.reset();
    recipe.gpus.clear();
    recipe.libraries.clear();
    recipe.compiler.reset();
  }
  for (const std::string& one : change.constraints) {
    recipe.constraints.push_back({.text = one});
    recipe.listed.constraints.push_back({one, nullptr, 0, 0});
  }
  return recipe;
}

std::vector<std::string> constraints_of(const Recipe& recipe) {
  std::vector<std::string> texts;
  for (const Placed& one : recipe.constraints) texts.push_back(one.text);
  return texts;
}

/// Whether it asks for what is expected, and for nothing else. The framework's text may differ in
/// its blanks.
bool is_as(const Recipe& after, const Recipe& wanted) {
  Request found = request_of(after);
  Request asked = request_of(wanted);
  if (after.framework && wanted.framework) {
    found.framework = std::get<Requirement>(parse_requirement(found.framework)).str();
    asked.framework = std::get<Requirement>(parse_requirement(asked.framework)).str();
  }
  return found == asked && settings_of(after) == settings_of(wanted) &&
         after.files == wanted.files && after.requirements == wanted.requirements &&
         constraints_of(after) == constraints_of(wanted);
}

/// With the framework's own change made where it is an item of `packages`.
Recipe with_package(const Recipe& recipe, const NamedFramework& named, const RecipeChange& change) {
  const Requirement after = changed(named, change);
  if (after.str() == named.requirement.str()) return recipe;
  return add_packages(recipe, PackageList::packages, {after.str()}).recipe;
}

}  // namespace

std::optional<NamedFramework> named_framework(const Recipe& recipe) {
  if (recipe.framework) return framework_in(recipe.framework->text, false);
  for (const Placed& package : recipe.packages) {
    if (auto found = framework_in(package.text, true)) return found;
  }
  return std::nullopt;
}

Recipe changed_recipe(const Recipe& recipe, const RecipeChange& change, const fs::path& path) {
  const auto named = named_framework(recipe);
  const Recipe before = named && named->in_packages ? with_package(recipe, *named, change) : recipe;
  RecipeText text(before);
  if (named && !named->in_packages) {
    const std::string after = changed(*named, change).str();
    if (after != named->requirement.str()) text.set("framework", after);
  }
  if (!change.cuda.empty()) text.set("cuda", change.cuda);
  if (!change.driver.empty()) text.set("driver", change.driver);
  for (const std::string& gpu : change.gpus) text.append("gpus", gpu);
  for (const std::string_view key : kDemands) {
    if (change.no_demands && has_demand(before, key)) text.remove(key);
  }
  for (const std::string& one : change.constraints)
    text.append("constraints", one, kConstraintAnchors);
  Recipe after = parse_recipe(text.str(), path);
  RequirementLists all_listed = before.listed;
  const std::size_t first = after.constraints.size() - change.constraints.size();
  const auto own = std::make_shared<const RequirementsText>(RequirementsText{path, text.str()});
  for (std::size_t i = first; i < after.constraints.size(); ++i) {
    const Placed& one = after.constraints[i];
    all_listed.constraints.push_back({one.text, own, one.line, one.column});
  }
  take_listed(after, std::move(all_listed));
  if (!is_as(after, expected(before, change, named))) throw text.unknown_layout("cuda");
  return after;
}

std::string shown(const Recipe& recipe, const RecipeChange& change) {
  std::vector<std::string> keys;
  const auto named = named_framework(recipe);
  if (named && !change.framework.empty()) {
    keys.push_back(fmt::format("`{}: {}`", named->in_packages ? "packages" : "framework",
                               changed(*named, change).str()));
  }
  if (!change.cuda.empty()) keys.push_back(fmt::format("`cuda: \"{}\"`", change.cuda));
  if (!change.driver.empty()) keys.push_back(fmt::format("`driver: \"{}\"`", change.driver));
  if (!change.gpus.empty()) keys.push_back(fmt::format("{} in `gpus`", join(change.gpus, " ")));
  if (change.no_demands) keys.emplace_back("no demands of CUDA");
  for (const std::string& one : change.constraints) {
    keys.push_back(fmt::format("`constraints: [\"{}\"]`", one));
  }
  return join(keys, ", ");
}

}  // namespace mlenv
