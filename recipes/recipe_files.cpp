// `files:` of a recipe.
#include <algorithm>
#include <array>
#include <map>

#include "base/paths.hpp"
#include "recipes/project_path.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Folders where what an image has is not what its containers see, or is mlenv's own.
struct Reserved {
  std::string_view path;
  std::string_view why;
};
constexpr std::string_view kOwn = "every container has its own";
constexpr std::array<Reserved, 8> kReserved = {{{"/proc", kOwn},
                                                {"/sys", kOwn},
                                                {"/dev", kOwn},
                                                {"/tmp", kOwn},
                                                {"/etc/hosts", kOwn},
                                                {"/etc/hostname", kOwn},
                                                {"/etc/resolv.conf", kOwn},
                                                {"/opt/venv", "Python's packages are there"}}};

}  // namespace

std::string reserved_place(std::string_view path) {
  for (const Reserved& reserved : kReserved) {
    if (is_beneath(path, reserved.path))
      return fmt::format("`{}`: {}", reserved.path, reserved.why);
  }
  return {};
}

std::optional<std::string> RecipeReader::project_path(const YamlNode& node, std::string_view text,
                                                      std::string_view example) {
  auto read = clean_project_path(text);
  if (auto* clean = std::get_if<std::string>(&read)) return std::move(*clean);
  values_.mistake(node, fmt::format("`{}` {}; write a path in the recipe's folder, as in `{}`",
                                    text, std::get<PathMistake>(read).message, example));
  return std::nullopt;
}

bool RecipeReader::check_target(const YamlNode& node, const std::string& target) {
  if (!is_clean_absolute_path(target)) {
    values_.mistake(node, fmt::format("`{}` is not an absolute path without `.` and `..`: where in "
                                      "the image, as in `/workspace`",
                                      node.text));
    return false;
  }
  const std::string reserved = reserved_place(target);
  if (!reserved.empty()) values_.mistake(node, "nothing can be copied to " + reserved);
  return reserved.empty();
}

void RecipeReader::files(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::map) {
    values_.mistake(node,
                    "`files` is a map of what to copy and where to, as in "
                    "`{src: /workspace}`");
    return;
  }
  values_.members(node, "`files`", {});  // duplicates and keys that are no text
  std::map<std::string, std::string> seen;
  for (const auto& [key, value] : node.members) {
    if (key.kind != YamlNode::Kind::scalar) continue;
    const std::optional<std::string> source = project_path(key, key.text, "src");
    const std::optional<Placed> text =
        values_.text(value, "the target of `" + key.text + '`', "/workspace");
    if (!source || !text) continue;
    const auto [first, fresh] = seen.emplace(*source, key.text);
    if (!fresh && first->second != key.text) {
      values_.mistake(key, fmt::format("`{}` and `{}` are the same", first->second, key.text));
    }
    RecipeFile file{{*source, key.line, key.column}, text->text};
    file.into = file.target.size() > 1 && file.target.ends_with('/');
    if (file.into) file.target.pop_back();
    if (check_target(value, file.target)) recipe_.files.push_back(std::move(file));
  }
}

}  // namespace mlenv
