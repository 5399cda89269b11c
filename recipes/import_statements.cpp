#include "recipes/import_statements.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

bool is_module_name(std::string_view text) {
  if (text.empty() || text.starts_with('.')) return false;
  const std::vector<std::string_view> parts = split(text, '.');
  return std::all_of(parts.begin(), parts.end(), [](std::string_view one) {
    return !one.empty() && !is_digit(one.front()) &&
           std::all_of(one.begin(), one.end(),
                       [](char c) { return is_alphanumeric(c) || c == '_'; });
  });
}

/// `a.b` of `a.b as c`.
std::string_view before_as(std::string_view text) {
  text = trim(text);
  return text.substr(0, text.find_first_of(" \t"));
}

class StatementReader {
 public:
  explicit StatementReader(std::string_view source) : lines_(split(source, '\n')) {}

  std::vector<ImportStatement> read() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      if (!skip_.empty()) {
        if (lines_[at_].find(skip_) != std::string_view::npos) skip_ = {};
        continue;
      }
      const std::string_view line = lines_[at_];
      if (line.starts_with("import ") || line.starts_with("from ")) {
        statement();
      } else {
        open_string(line);
      }
    }
    return std::move(found_);
  }

 private:
  /// A string of several lines that begins here, and does not end.
  void open_string(std::string_view line) {
    constexpr std::array<std::string_view, 2> kMarks = {"\"\"\"", "'''"};
    while (true) {
      std::string_view mark;
      std::size_t first = std::string_view::npos;
      for (const std::string_view one : kMarks) {
        const std::size_t place = line.find(one);
        if (place < first) {
          first = place;
          mark = one;
        }
      }
      if (mark.empty() || line.substr(0, first).find('#') != std::string_view::npos) return;
      line.remove_prefix(first + mark.size());
      const std::size_t end = line.find(mark);
      if (end == std::string_view::npos) {
        skip_ = mark;
        return;
      }
      line.remove_prefix(end + mark.size());
    }
  }

  /// With the lines that it goes on in, without comments and brackets.
  std::string whole() {
    std::string text;
    bool brackets = false;
    for (;; ++at_) {
      std::string_view line = trim(lines_[at_].substr(0, lines_[at_].find('#')));
      brackets = brackets || line.find('(') != std::string_view::npos;
      const bool closed = line.find(')') != std::string_view::npos;
      const bool goes_on = line.ends_with('\\');
      if (goes_on) line.remove_suffix(1);
      text.append(line.substr(0, line.find(';'))).append(" ");
      const bool more = goes_on || (brackets && !closed);
      if (!more || at_ + 1 == lines_.size()) break;
    }
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
    return text;
  }

  void statement() {
    const int line = static_cast<int>(at_) + 1;
    const std::string text = whole();
    constexpr std::string_view kImport = "import ";
    constexpr std::string_view kFrom = "from ";
    if (text.starts_with(kImport)) {
      const std::string_view rest = std::string_view(text).substr(kImport.size());
      for (const std::string_view one : split(rest, ',')) {
        if (is_module_name(before_as(one))) {
          found_.push_back({std::string(before_as(one)), {}, line});
        }
      }
      return;
    }
    const std::size_t middle = text.find(" import ");
    if (middle == std::string::npos) return;
    const std::string_view all{text};
    const std::string_view module = trim(all.substr(kFrom.size(), middle - kFrom.size()));
    if (!is_module_name(module)) return;
    ImportStatement one{std::string(module), {}, line};
    for (const std::string_view part : split(all.substr(middle + kImport.size() + 1), ',')) {
      const std::string_view name = before_as(part);
      if (is_module_name(name)) one.names.emplace_back(name);
    }
    found_.push_back(std::move(one));
  }

  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
  std::string_view skip_;  ///< the end of a string that goes on; empty: none does
  std::vector<ImportStatement> found_;
};

}  // namespace

std::vector<ImportStatement> import_statements(std::string_view source) {
  return StatementReader(source).read();
}

}  // namespace mlenv
