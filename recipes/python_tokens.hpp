#pragma once
// Python's tokens, as far as texts, names and brackets go (its reference, "Lexical analysis").
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct PythonToken {
  enum class Kind { name, text, number, sign, line_end };
  Kind kind = Kind::sign;
  std::string text;
  bool plain = true;    ///< of a text: no f-string with fields
  bool margin = false;  ///< it begins its line
  int line = 0;
};
using PythonTokens = std::span<const PythonToken>;

/// Ends with a `line_end`. Never throws: damaged text gives some tokens.
std::vector<PythonToken> python_tokens(std::string_view text);

bool is_sign(const PythonToken& token, char c);
/// Of a bracket: 1 for one that opens, -1 for one that closes.
int depth_change(const PythonToken& token);

/// How many tokens an expression has: up to a `,` or closing bracket of its own level, or a line's
/// end.
std::size_t expression_length(PythonTokens tokens);
/// Of what begins with an opening bracket, up to the one that closes it; 0: it stays open.
std::size_t bracket_length(PythonTokens tokens);

}  // namespace mlenv
