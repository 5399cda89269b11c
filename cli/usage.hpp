#pragma once
// Mistakes on the command line, in our words.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
class Option;
class ParseError;
}  // namespace CLI

namespace mlenv::cli {

/// What a misspelt word was meant to be: at most two edits away (a swap of neighbours is one), and
/// fewer than half its letters. The first of the nearest; empty when none is.
std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// `mlenv store verify`
std::string command_line_of(const CLI::App& app);

/// That `word` is no command of `app`, and what may have been meant.
Error unknown_command(const CLI::App& app, std::string_view word);

/// The first thing that is wrong with `words` (without the program's name), which the parser did
/// not take.
Error usage_mistake(const CLI::App& app, const std::vector<std::string>& words,
                    const CLI::ParseError& error);

/// An option that may be given several times takes one word each time, so that what follows is not
/// taken for more of it.
void take_one_word(CLI::Option* option);
/// Name of the validator of `take_one_of`, whose description is `{auto,always,never}`.
inline constexpr const char* kChoices = "choices";
/// Its value is one of `choices`.
void take_one_of(CLI::Option* option, std::vector<std::string> choices);

/// Of `-e`: `K=V`, or `K` alone. Throws `usage` for what names no variable.
void check_variables(const std::vector<std::string>& variables);

/// For the parser, which takes a word in brackets for a list, and its parts for words: `[a, b]` of
/// a command stays one word. To be called once all options are declared.
std::vector<std::string> as_they_are(CLI::App& app, std::vector<std::string> words);

}  // namespace mlenv::cli
