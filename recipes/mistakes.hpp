#pragma once
// All that is wrong with one file a person wrote, shown together: `file:line:col: message`, the
// line, and a caret.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv {

/// `file:line:col: message`, the line and a caret; long lines are cut around the caret. A place
/// after the last line that holds anything is moved to the end of that line. Without `source` the
/// first part alone; the same, and no word of the file, where it is a link that leads out of its
/// folder.
std::string shown_mistake(const fs::path& shown_path, std::string_view source, int line, int column,
                          std::string_view message);

class Mistakes {
 public:
  Mistakes(fs::path shown_path, std::string source)
      : path_(std::move(shown_path)), source_(std::move(source)) {}

  /// Places are 1-based, columns in characters.
  void add(int line, int column, std::string message);
  bool empty() const { return found_.empty(); }

  /// One usage error that lists them in the file's order, at most 20.
  Error error(std::string code) const;

 private:
  struct Mistake {
    int line;
    int column;
    std::string message;
  };
  fs::path path_;
  std::string source_;
  std::vector<Mistake> found_;
};

}  // namespace mlenv
