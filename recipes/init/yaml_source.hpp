#pragma once
// YAML of other tools, for converting: what is asked for is found, all else is told.
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/converters.hpp"
#include "recipes/yaml.hpp"

namespace mlenv {

class YamlSource {
 public:
  /// Throws `source-invalid` (usage), with all mistakes, unless it is a map.
  YamlSource(const ConversionSource& source, Conversion& to);

  const YamlNode& root() const { return document_.root; }
  SourcePlace place(const YamlNode& node) const { return {shown_, node.line}; }
  /// Null when there is no such key.
  static const YamlNode* find(const YamlNode& map, std::string_view key);
  /// The texts of a list, or a single text; what else stands in it is left out.
  std::vector<const YamlNode*> texts(const YamlNode& node, std::string_view key);
  void leave_out(const YamlNode& node, std::string_view text, std::string_view why);
  /// Keys of `map` that are not among `known` are left out, each with its value.
  void leave_out_others(const YamlNode& map, const std::vector<std::string_view>& known,
                        std::string_view prefix = {});
  /// As it could be written in one line.
  static std::string shown(const YamlNode& node);

 private:
  YamlDocument document_;
  std::string shown_;
  Conversion& to_;
};

}  // namespace mlenv
