// `build:` of a recipe: how wheels are made of sources.
#include <array>

#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/requirement_files.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 5> kBuildKeys = {"constraints", "requires", "env",
                                                        "config-settings", "network"};

}  // namespace

std::vector<std::string_view> build_keys() { return {kBuildKeys.begin(), kBuildKeys.end()}; }

void RecipeReader::build(const YamlNode& node) {
  BuildSteering& steering = recipe_.steering.build;
  for (const auto& [key, value] : values_.members(node, "`build`", kBuildKeys)) {
    if (value->kind == YamlKind::null) continue;
    if (key == "constraints") {
      recipe_.build_constraints = constraint_list(*value, "`constraints` of `build`");
      for (const Placed& one : recipe_.build_constraints) {
        if (!is_constraints_file(one.text)) steering.constraints.push_back(one.text);
      }
    } else if (key == "requires") {
      build_requirements(*value);
    } else if (key == "env") {
      build_env(*value);
    } else if (key == "config-settings") {
      config_settings(*value);
    } else {
      steering.network = flag(*value, key);
    }
  }
}

void RecipeReader::build_requirements(const YamlNode& node) {
  for (const auto& [key, value] : values_.members(node, "`requires`", {})) {
    const auto name = package_name(*value, key);
    const std::vector<std::string> texts =
        requirement_texts(*value, fmt::format("the build requirements of `{}`", key));
    if (!name) continue;
    std::vector<std::string>& all = recipe_.steering.build.requirements[*name];
    all.insert(all.end(), texts.begin(), texts.end());
  }
}

void RecipeReader::build_env(const YamlNode& node) {
  auto& env = recipe_.steering.build.env;
  const auto take = [&](const std::string& key, const YamlNode& value,
                        std::map<std::string, std::string>& into) {
    if (!is_env_name(key)) {
      values_.mistake(value, fmt::format("`{}` is not a name for an environment variable", key));
    } else if (value.kind != YamlKind::scalar) {
      values_.mistake(value, fmt::format("the value of `{}` is a text; write `\"\"` for an empty "
                                         "one",
                                         key));
    } else if (has_control(value.text, "\t\n")) {
      values_.mistake(value, fmt::format("`{}` holds control characters", key));
    } else {
      into.emplace(key, value.text);
    }
  };
  for (const auto& [key, value] : values_.members(node, "`env` of `build`", {})) {
    if (value->kind != YamlKind::map) {
      take(key, *value, env.all);
    } else if (const auto name = package_name(*value, key)) {
      for (const auto& [inner, text] : values_.members(*value, fmt::format("`{}`", key), {})) {
        take(inner, *text, env.by_name[*name]);
      }
    }
  }
}

void RecipeReader::config_settings(const YamlNode& node) {
  auto& settings = recipe_.steering.build.config_settings;
  const auto take = [&](const std::string& key, const YamlNode& value,
                        std::map<std::string, std::vector<std::string>>& into) {
    if (key.empty() || has_control(key)) {
      values_.mistake(value, "a setting's name is a text without control characters");
      return;
    }
    if (value.kind == YamlKind::scalar) {
      into[key] = {value.text};
      if (has_control(value.text)) values_.mistake(value, "control characters are not allowed");
      return;
    }
    if (value.kind != YamlKind::list) {
      values_.mistake(value, fmt::format("the value of `{}` is a text, or a list of them", key));
      return;
    }
    for (const Placed& one : values_.texts(value, '`' + key + '`', "[-DA=ON]")) {
      into[key].push_back(one.text);
      if (has_control(one.text)) {
        mistakes_.add(one.line, one.column, "control characters are not allowed");
      }
    }
  };
  for (const auto& [key, value] : values_.members(node, "`config-settings`", {})) {
    if (value->kind != YamlKind::map) {
      take(key, *value, settings.all);
    } else if (const auto name = package_name(*value, key)) {
      for (const auto& [inner, text] : values_.members(*value, fmt::format("`{}`", key), {})) {
        take(inner, *text, settings.by_name[*name]);
      }
    }
  }
}

}  // namespace mlenv
