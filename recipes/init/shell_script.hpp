#pragma once
// A shell's script taken apart into what it chooses between and repeats (POSIX.1-2017, XCU 2.9):
// lists, `if`, `case`, loops and groups in braces. Nothing is replaced in it.
#include <optional>
#include <string_view>
#include <vector>

namespace mlenv {

struct ShellNode {
  enum class Kind {
    simple,  ///< a command, a pipe, `( … )`
    negated,
    list,
    condition,  ///< `if`
    choice,     ///< `case`
    items,      ///< `for`
    loop,       ///< `while`, `until`
    braces
  };
  Kind kind = Kind::simple;
  std::string_view text{};  ///< all of it, as written
  /// Of a list its commands; of `if` conditions and what they lead to, in turn, and at the end what
  /// `else` does; of `case` what each pattern leads to; of the others their body.
  std::vector<ShellNode> parts{};
  /// Of a list what stands before each: `&` of `&&`, `|` of `||`, `;` of all else. Of a pipe more
  /// than one command, `-`.
  std::vector<char> before{};
  std::vector<std::string_view> patterns{};  ///< of `case`: `a|b`
  std::string_view name{};                   ///< the variable of `for`
  std::string_view words{};                  ///< what `for` goes through, what `case` looks at
  bool redirected = false;                   ///< something stands behind it, as in `done < list`
};

/// Always a list. nullopt: it has functions, heredocs, arithmetic, or does not end.
std::optional<ShellNode> read_shell_script(std::string_view text);

}  // namespace mlenv
