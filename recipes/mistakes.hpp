#pragma once
// All that is wrong with one file a person wrote, shown together: `file:line:col: message`, the
// line, and a caret.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"

namespace mlenv {

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
  std::string shown(const Mistake& mistake) const;
  fs::path path_;
  std::string source_;
  std::vector<Mistake> found_;
};

}  // namespace mlenv
