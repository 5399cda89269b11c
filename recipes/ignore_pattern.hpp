#pragma once
// One pattern of an ignore file, as Docker reads it: Go's path/filepath.Match, and `**` for any
// number of folders (Docker documentation, "Build context", ".dockerignore files").
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv {

/// Matching takes at most pattern times path, whatever the pattern.
class IgnorePattern {
 public:
  struct Mistake {
    std::size_t offset = 0;  ///< in the text, in bytes
    std::string message;
  };
  /// `text` is clean: relative, no `.`, no empty parts. Where filepath.Match gives ErrBadPattern,
  /// `mistake` is filled and the pattern matches nothing.
  IgnorePattern(std::string_view text, Mistake& mistake);

  /// `path` as a whole: relative, no `.` or `..`, no `/` at its end.
  bool matches(std::string_view path) const;
  /// Whether it may match the folder or something below it. Never wrongly false.
  bool may_match_in(std::string_view folder) const;
  /// Whether its last part holds a letter or a digit: it says what it means by name, which `*`
  /// does not.
  bool names_something() const;
  /// Whether one of its parts with a letter or digit matches `name`, a path of one part.
  bool mentions(std::string_view name) const;

 private:
  struct Token {
    enum class Kind {
      character,   ///< one certain character
      any,         ///< one but `/`
      set,         ///< one of `ranges` (or of the others), but never `/`
      run,         ///< `*`: any number of characters but `/`
      folders,     ///< `**/`: nothing, or anything up to a `/`
      everything,  ///< `**` at the end: any number of any characters
    };
    Kind kind = Kind::character;
    char32_t character = 0;
    bool inverted = false;
    std::vector<std::pair<char32_t, char32_t>> ranges = {};
    bool takes(char32_t one) const;
  };
  void compile(Mistake& mistake);
  std::size_t compile_set(const std::vector<std::pair<char32_t, std::size_t>>& text, std::size_t at,
                          Mistake& mistake);
  void arrive(std::vector<char>& states, std::size_t at) const;

  std::string text_;
  std::vector<Token> tokens_;
  bool plain_ = false;  ///< no wildcard: the text itself
};

}  // namespace mlenv
