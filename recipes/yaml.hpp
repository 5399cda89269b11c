#pragma once
// YAML text as a tree of values with their places. The only file that knows yaml-cpp is yaml.cpp.
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct YamlMember;

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;                 ///< of a scalar, as written: `3.10` stays `3.10`
  bool quoted = false;              ///< a quoted or block scalar: `"~"` is a text, `~` is null
  int line = 0;                     ///< 1-based
  int column = 0;                   ///< 1-based, in characters
  std::vector<YamlNode> items;      ///< of a list
  std::vector<YamlMember> members;  ///< of a map, in file order, duplicates kept
};

using YamlKind = YamlNode::Kind;

struct YamlMember {
  YamlNode key;
  YamlNode value;
};

/// Why a text is no YAML document that mlenv reads, and where.
struct YamlMistake {
  int line = 0;
  int column = 0;
  std::string message;
};

struct YamlDocument {
  YamlNode root;                      ///< null when the text holds no document
  bool complete = false;              ///< `root` is all there is: mistakes are not of syntax
  std::vector<YamlMistake> mistakes;  ///< in the order found
};

/// Never throws for bad input: syntax errors, text that is not UTF-8, tabs as indentation, a second
/// document, nesting deeper than 32, unquoted texts of several lines (a wrong indentation makes
/// them), and anchors, aliases and tags (not needed in a recipe, and aliases make small files
/// large) are mistakes.
YamlDocument parse_yaml(std::string_view text);
/// Of another tool's file, which is there as it is: tags are passed over (old condas write
/// `!!python/tuple`), aliases are the values that they name, and `<<` takes over the members of
/// maps (together they stand for ten thousand values at most), and a plain text goes on behind a
/// line's `\`.
YamlDocument parse_foreign_yaml(std::string_view text);

}  // namespace mlenv
