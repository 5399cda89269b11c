#pragma once
// A shell's command line in simple commands and their words (POSIX.1-2017, XCU 2.2 and 2.9), as far
// as install commands need it.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/init/dockerfile.hpp"

namespace mlenv {

struct ShellCommand {
  std::vector<std::string> words{};
  std::string text{};    ///< as written
  std::string input{};   ///< the file that `<` names
  std::string group{};   ///< what stands in `( … )`, where that is all of it
  bool simple = true;    ///< false: it writes to a file, or has substitutions or unknown variables
  bool alone = true;     ///< false: in a pipe, after `||`, in the background
  bool control = false;  ///< begins with a word of the shell's own: `if`, `for`, `{`, `((`
  /// Of a whole script that a step can hold and nothing is taken from: its simple commands.
  std::vector<ShellCommand> inside{};
};

/// Commands in order. Known variables are replaced; output that goes nowhere (`> /dev/null`,
/// `2>&1`) is left out of the words; `a>=1` is a word. What cannot be taken apart (an open quote)
/// is one command that is not simple.
std::vector<ShellCommand> shell_commands(std::string_view text, const DockerVariables& known);

/// The first character at `at` or behind it that is wanted and stands neither in quotes nor behind
/// a
/// `\`; npos: none. `is_wanted` is asked of each that stands so, in order.
std::size_t find_unquoted(std::string_view text, std::size_t at,
                          const std::function<bool(char)>& is_wanted);

/// Where the `)` stands that closes the `(` at `at`; npos: nowhere.
std::size_t closing_parenthesis(std::string_view text, std::size_t at);

}  // namespace mlenv
