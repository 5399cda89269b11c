#pragma once
// Which files of a project stay out of its image: an ignore file's lines, with Docker's rules
// (Docker documentation, "Build context", ".dockerignore files"), and what mlenv leaves out by
// itself: version control, caches, and files that by their name hold secrets.
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "recipes/ignore_pattern.hpp"

namespace mlenv {

class IgnoreRules {
 public:
  /// Rules of no file: only mlenv's own.
  IgnoreRules() = default;
  /// A line a pattern; `#` in its first column makes a comment, `!` before a pattern an exception.
  /// Blanks and slashes around a pattern do not matter. Throws `ignore-invalid` (usage) that lists
  /// all mistakes, each with its place.
  static IgnoreRules parse(std::string_view text, const fs::path& shown_path);

  /// What is known of a path, to be handed to the questions about those in it.
  struct Fate {
    std::vector<bool> matched;  ///< by rule: it holds for this path or a folder that it is in
    bool ignored = false;       ///< by the lines
    bool withheld = false;      ///< by mlenv itself
    bool inherited = false;     ///< withheld with a folder that it is in
    bool secret = false;        ///< withheld, by this very name, which is one of secrets
    bool left_out() const { return ignored || withheld; }
  };
  /// Of `path` (relative to the project, no `.` or `..`) in a folder with `parent`'s fate; a
  /// default one for the project itself. The last line that holds for a path decides; an exception
  /// brings back what mlenv itself withholds only where the last part of it names that
  /// (`!config/.env`, `!*.pem`; not `!config`, `!config/**`).
  Fate judge(std::string_view path, const Fate& parent) const;
  /// Whether some exception may bring back something in a folder that is left out.
  bool may_return(std::string_view folder, const Fate& fate) const;

 private:
  struct Rule {
    IgnorePattern pattern;
    bool exception = false;
  };
  std::vector<Rule> rules_;
};

/// The rules beside a recipe: `.mlenvignore`, else `.dockerignore`, else none. Throws as
/// read_small_file_if_exists() does (base/small_file.hpp).
struct ProjectIgnores {
  IgnoreRules rules;
  std::string file;  ///< its name; `.mlenvignore` where there is none
};
ProjectIgnores read_ignores(const fs::path& folder);

}  // namespace mlenv
