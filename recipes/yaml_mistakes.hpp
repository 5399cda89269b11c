#pragma once
// What is wrong with a text that is no YAML, in words for somebody who does not know the parser.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/yaml.hpp"

namespace mlenv {

/// Places are 1-based: number of the line, column in bytes.
class YamlText {
 public:
  explicit YamlText(std::string_view text);

  /// A plain scalar with this value that began there and goes on in a later line: nearly always an
  /// indentation that was not meant. `in_brackets`: within `[…]` or `{…}`.
  std::optional<YamlMistake> continued(int number, int column, std::string_view value,
                                       bool in_brackets) const;
  /// The quoted scalar that began there has no closing quote (the parser takes the rest of the file
  /// for its text).
  std::optional<YamlMistake> unclosed_quote(int number, int column) const;
  /// The parser's complaint about a place.
  YamlMistake explained(int number, int column, const std::string& said) const;

 private:
  /// Without its line end; empty where there is no such line.
  std::string_view line(int number) const;
  YamlMistake stray_colon(int number, int column) const;
  std::optional<YamlMistake> tab(int number) const;

  std::string_view text_;
  std::vector<std::size_t> starts_;
};

}  // namespace mlenv
