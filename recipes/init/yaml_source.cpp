#include "recipes/init/yaml_source.hpp"

#include <algorithm>

#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"

namespace mlenv {

using Is = YamlNode::Kind;

YamlSource::YamlSource(const ConversionSource& source, Conversion& to)
    : document_(parse_foreign_yaml(source.text)), shown_(source.shown), to_(to) {
  Mistakes mistakes(source.path, source.text);
  for (const YamlMistake& mistake : document_.mistakes) {
    mistakes.add(mistake.line, mistake.column, mistake.message);
  }
  if (document_.complete && document_.root.kind != Is::map) {
    mistakes.add(std::max(document_.root.line, 1), std::max(document_.root.column, 1),
                 "it is no map: lines of `key: value`");
  }
  if (!mistakes.empty()) throw mistakes.error("source-invalid");
}

const YamlNode* YamlSource::find(const YamlNode& map, std::string_view key) {
  for (const YamlMember& member : map.members) {
    if (member.key.text == key && member.value.kind != Is::null) return &member.value;
  }
  return nullptr;
}

std::vector<const YamlNode*> YamlSource::texts(const YamlNode& node, std::string_view key) {
  std::vector<const YamlNode*> found;
  if (node.kind == Is::scalar) return {&node};
  for (const YamlNode& item : node.items) {
    if (item.kind == Is::scalar) {
      found.push_back(&item);
    } else {
      leave_out(item, shown(item), "not a text");
    }
  }
  if (node.kind == Is::map) leave_out(node, key, "not a list of texts");
  return found;
}

void YamlSource::leave_out(const YamlNode& node, std::string_view text, std::string_view why) {
  to_.leave_out(place(node), text, why);
}

void YamlSource::leave_out_others(const YamlNode& map, const std::vector<std::string_view>& known,
                                  std::string_view prefix) {
  for (const YamlMember& member : map.members) {
    const std::string& key = member.key.text;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    leave_out(member.key, std::string(prefix) + key + ": " + shown(member.value),
              "no key of the recipe stands for it");
  }
}

std::string YamlSource::shown(const YamlNode& node) {
  if (node.kind == Is::scalar) return node.text;
  std::vector<std::string> parts;
  for (const YamlNode& item : node.items) parts.push_back(shown(item));
  if (node.kind == Is::list) return '[' + join(parts, ", ") + ']';
  for (const YamlMember& member : node.members) {
    parts.push_back(member.key.text + ": " + shown(member.value));
  }
  return node.kind == Is::map ? '{' + join(parts, ", ") + '}' : "";
}

}  // namespace mlenv
