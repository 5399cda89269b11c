#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "recipes/recipe_reader.hpp"
#include "recipes/text.hpp"

namespace mlenv {

namespace {

/// What other formats call our keys.
struct KeyAlias {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array<KeyAlias, 19> kKeyAliases = {{{"override-dependencies", "overrides"},
                                                   {"override", "overrides"},
                                                   {"exclude-dependencies", "exclude"},
                                                   {"excludes", "exclude"},
                                                   {"constraint-dependencies", "constraints"},
                                                   {"no-build-package", "only-binary"},
                                                   {"no-binary-package", "no-binary"},
                                                   {"find-links", "index"},
                                                   {"build-constraints", "build"},
                                                   {"cmd", "command"},
                                                   {"entrypoint", "command"},
                                                   {"args", "command"},
                                                   {"environment", "env"},
                                                   {"dependencies", "packages"},
                                                   {"pip", "packages"},
                                                   {"apt", "system"},
                                                   {"image", "base"},
                                                   {"from", "base"},
                                                   {"working_dir", "workdir"}}};

std::string key_suggestion(std::string_view key, std::span<const std::string_view> known) {
  for (const KeyAlias& name : kKeyAliases) {
    const bool fits = std::find(known.begin(), known.end(), name.ours) != known.end();
    if (name.theirs == key && fits) return "; " + did_you_mean(name.ours);
  }
  return suggestion(key, known);
}

}  // namespace

std::optional<Placed> ValueReader::text(const YamlNode& node, std::string_view what,
                                        std::string_view example) {
  if (node.kind == YamlNode::Kind::scalar) return Placed{node.text, node.line, node.column};
  mistake(node, node.kind == YamlNode::Kind::null
                    ? fmt::format("{} has no value; write one, as in `{}`", what, example)
                    : fmt::format("{} is a single text, as in `{}`", what, example));
  return std::nullopt;
}

std::vector<Placed> ValueReader::texts(const YamlNode& node, std::string_view what,
                                       std::string_view example) {
  std::vector<Placed> found;
  if (node.kind == YamlNode::Kind::null) return found;
  if (node.kind != YamlNode::Kind::list) {
    mistake(node, fmt::format("{} is a list, as in `{}`", what, example));
    return found;
  }
  for (const YamlNode& item : node.items) {
    if (item.kind == YamlNode::Kind::scalar) {
      found.push_back({item.text, item.line, item.column});
    } else {
      mistake(item, fmt::format("each item of {} is a text, as in `{}`", what, example));
    }
  }
  return found;
}

std::vector<std::pair<std::string, const YamlNode*>> ValueReader::members(
    const YamlNode& node, std::string_view what, std::span<const std::string_view> known) {
  std::vector<std::pair<std::string, const YamlNode*>> found;
  if (node.kind == YamlNode::Kind::null) return found;
  if (node.kind != YamlNode::Kind::map) {
    mistake(node, fmt::format("{} is a map: lines of `key: value`", what));
    return found;
  }
  std::map<std::string, int> first_line;
  for (const auto& [key, value] : node.members) {
    if (key.kind != YamlNode::Kind::scalar) {
      mistake(key, "a key is a single text");
      continue;
    }
    const auto [known_at, fresh] = first_line.emplace(key.text, key.line);
    if (!fresh) {
      mistake(key,
              fmt::format("`{}` is given twice, first in line {}", key.text, known_at->second));
      continue;
    }
    if (!known.empty() && std::find(known.begin(), known.end(), key.text) == known.end()) {
      mistake(key, fmt::format("unknown key `{}`{}", key.text, key_suggestion(key.text, known)));
      continue;
    }
    found.emplace_back(key.text, &value);
  }
  return found;
}

}  // namespace mlenv
