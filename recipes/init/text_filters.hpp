#pragma once
// What grep, sed and their kin leave of a text (POSIX.1-2017, XCU; GNU's options that builds use).
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// A program of a pipe that reads a text: its words without the files that it names.
struct TextFilter {
  std::vector<std::string> words;
  std::vector<std::string> files;  ///< what it reads in the place of its input
  bool in_place = false;           ///< `sed -i`: the files are written, too
};

/// nullopt: no program whose output is known.
std::optional<TextFilter> text_filter(const std::vector<std::string>& words);

/// What it writes of `input`; nullopt: that is not known.
std::optional<std::string> filtered(const TextFilter& filter, std::string_view input);

}  // namespace mlenv
