// `run:` of a recipe.
#include <algorithm>
#include <array>

#include "recipes/recipe_reader.hpp"
#include "recipes/recipe_schema.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kRunExample = "[make -C /workspace/ext]";
constexpr std::array<std::string_view, 3> kStepKeys = {"run", "network", "secrets"};

}  // namespace

std::vector<std::string_view> step_keys() { return {kStepKeys.begin(), kStepKeys.end()}; }

bool is_secret_id(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  const auto fits = [](char c) {
    return is_digit(c) || is_letter(c) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kLongest && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), fits);
}

void RecipeReader::run(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::list) {
    values_.mistake(node, fmt::format("`run` is a list of commands, as in `{}`", kRunExample));
    return;
  }
  for (const YamlNode& item : node.items) {
    RunStep step;
    if (item.kind == YamlNode::Kind::scalar) {
      run_command(item, step);
    } else if (item.kind == YamlNode::Kind::map) {
      run_map(item, step);
    } else {
      values_.mistake(item,
                      "a step is a command, as in `make -C /workspace/ext`, or a map, as in "
                      "`{run: make, network: true}`");
      continue;
    }
    recipe_.run.push_back(std::move(step));
  }
}

void RecipeReader::run_command(const YamlNode& node, RunStep& step) {
  const std::optional<Placed> text = values_.text(node, "the command of a step", "make");
  if (!text) return;
  step.command = *text;
  // What ends a block of lines (`|`) means nothing to a shell.
  const std::size_t end = step.command.text.find_last_not_of(" \t\n");
  step.command.text.erase(end == std::string::npos ? 0 : end + 1);
  if (step.command.text.empty()) values_.mistake(node, "the command is empty");
  if (has_control(step.command.text, "\t\n")) {
    values_.mistake(node, "control characters are not allowed");
  }
}

void RecipeReader::run_map(const YamlNode& node, RunStep& step) {
  step.command = {"", node.line, node.column};
  bool has_command = false;
  for (const auto& [key, value] : values_.members(node, "a step", kStepKeys)) {
    if (key == "run") {
      has_command = true;
      run_command(*value, step);
    } else if (key == "network") {
      const bool plain = value->kind == YamlNode::Kind::scalar && !value->quoted;
      step.network = plain && value->text == "true";
      if (!plain || (value->text != "true" && value->text != "false")) {
        values_.mistake(*value, "`network` is `true` or `false`, without quotes");
      }
    } else {
      run_secrets(*value, step);
    }
  }
  if (!has_command) values_.mistake(node, "the step has no command; write `run: make`");
}

void RecipeReader::run_secrets(const YamlNode& node, RunStep& step) {
  for (const Placed& id : values_.texts(node, "`secrets`", "[netrc]")) {
    if (!is_secret_id(id.text)) {
      mistakes_.add(id.line, id.column,
                    fmt::format("`{}` is no name of a secret: letters, digits, `.`, `_` and `-`; "
                                "its content is given with `mlenv build --secret`",
                                id.text));
    }
    step.secrets.push_back(id.text);
  }
  std::sort(step.secrets.begin(), step.secrets.end());
  const auto twice = std::unique(step.secrets.begin(), step.secrets.end());
  step.secrets.erase(twice, step.secrets.end());
}

}  // namespace mlenv
