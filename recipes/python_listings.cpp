#include "recipes/python_listings.hpp"

#include <algorithm>
#include <array>

#include "base/files.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// One part of a path; empty: the text is none.
std::string path_part(const PythonToken& token) {
  std::string_view text = token.text;
  if (!token.plain) {  // f"{here}/requirements"
    const std::size_t field = text.rfind('}');
    if (field != std::string_view::npos) text.remove_prefix(field + 1);
    while (text.starts_with('/')) text.remove_prefix(1);
  }
  const bool path = text.find_first_of(" \t\r\n\\") == std::string_view::npos;
  return path ? std::string(text) : std::string();
}

class Listings {
 public:
  Listings(PythonTokens tokens, PythonValues& values) : tokens_(tokens), values_(values) {}

  std::vector<PythonListing> find() {
    std::vector<PythonListing> all;
    std::size_t begin = 0;
    for (std::size_t i = 0; i + 1 < tokens_.size() && all.size() < kMost; ++i) {
      if (starts_statement(i) && tokens_[i].margin) begin = i;
      if (tokens_[i].kind != PythonToken::Kind::name || !is_sign(tokens_[i + 1], '(')) continue;
      const std::string pattern = pattern_at(i);
      if (pattern.empty()) continue;
      const std::size_t end = end_of(begin);
      all.push_back({pattern, tokens_[begin].line, tokens_[end - 1].line, fed(begin, end, i)});
    }
    return all;
  }

 private:
  static constexpr std::size_t kMost = 100;

  bool starts_statement(std::size_t i) const {
    return i == 0 || tokens_[i - 1].kind == PythonToken::Kind::line_end;
  }

  /// Of the statement at the margin that begins there.
  std::size_t end_of(std::size_t begin) const {
    std::size_t end = begin + 1;
    while (end < tokens_.size() && !(starts_statement(end) && tokens_[end].margin)) ++end;
    return end;
  }

  /// Of a call whose name is at `i`; empty: it lists nothing.
  std::string pattern_at(std::size_t i) {
    const std::string& name = tokens_[i].text;
    const bool globs = name == "glob" || name == "iglob";
    const bool lists = name == "listdir" || name == "scandir" || name == "iterdir";
    if (!globs && !lists) return {};
    fs::path path;
    if (i > 1 && is_sign(tokens_[i - 1], '.')) add_parts(operand_before(i - 1), path, 0);
    const PythonTokens rest = tokens_.subspan(i + 1);
    add_parts(rest.first(bracket_length(rest)), path, 0);
    if (lists) path /= "*";
    return one_folder(path.lexically_normal());
  }

  static std::string one_folder(const fs::path& path) {
    const std::string folder = path.parent_path().string();
    const std::string name = path.filename().string();
    const bool here = path.is_relative() && !path.string().starts_with("..");
    const bool one = folder.find_first_of("*?[") == std::string::npos && !folder.empty();
    return here && one && says(name, "*") && name != "**" ? path.string() : std::string();
  }

  /// `Path("x")`, `(here / "x")` or `FOLDER` in front of the `.` at `dot`.
  PythonTokens operand_before(std::size_t dot) const {
    std::size_t begin = dot;
    int depth = 0;
    while (begin > 0 && dot - begin < kLongestOperand) {
      const PythonToken& token = tokens_[--begin];
      if (token.kind == PythonToken::Kind::line_end) return {};
      depth -= depth_change(token);
      if (depth == 0) break;
    }
    return depth == 0 ? tokens_.subspan(begin, dot - begin) : PythonTokens();
  }

  /// Texts of an expression, and of the names in it.
  void add_parts(PythonTokens value, fs::path& path, int depth) {
    constexpr int kDeepest = 4;
    for (const PythonToken& token : value) {
      if (!values_.step()) return;
      if (token.kind == PythonToken::Kind::text) {
        std::string part = path_part(token);
        if (!path.empty() && part.starts_with('/')) part.erase(0, 1);  // FOLDER + "/*.txt"
        if (!part.empty()) path /= part;
      } else if (token.kind == PythonToken::Kind::name && depth < kDeepest) {
        add_parts(values_.mentioned(token.text), path, depth + 1);
      }
    }
  }

  std::set<std::string> fed(std::size_t begin, std::size_t end, std::size_t call) const {
    std::set<std::string> names;
    if (tokens_[begin].text == "def") names.insert(tokens_[begin + 1].text);
    for (std::size_t i = begin; i + 3 < end; ++i) {
      if (tokens_[i].kind != PythonToken::Kind::name) continue;
      if (starts_statement(i) && is_changed(i + 1)) names.insert(tokens_[i].text);
    }
    constexpr std::array<std::string_view, 2> kKeywords = {"install_requires", "extras_require"};
    for (std::size_t i = call; i-- > begin;) {
      if (!is_among(kKeywords, tokens_[i].text) || !is_sign(tokens_[i + 1], '=')) continue;
      names.insert(tokens_[i].text);
      break;
    }
    return names;
  }

  /// `= …`, `: dict = …`, `+= …`, `[key] = …`, `.append(…)` behind a name.
  bool is_changed(std::size_t i) const {
    if (is_sign(tokens_[i], '.')) {
      constexpr std::array<std::string_view, 4> kAdd = {"append", "extend", "update", "setdefault"};
      return is_among(kAdd, tokens_[i + 1].text);
    }
    const PythonToken& next = tokens_[i + 1];
    if (is_sign(tokens_[i], ':')) return next.kind == PythonToken::Kind::name;  // not `else:`
    if (is_sign(tokens_[i], '+')) return is_sign(next, '=');
    return is_sign(tokens_[i], '[') || (is_sign(tokens_[i], '=') && !is_sign(next, '='));
  }

  static constexpr std::size_t kLongestOperand = 60;
  PythonTokens tokens_;
  PythonValues& values_;
};

}  // namespace

std::vector<PythonListing> python_listings(PythonTokens tokens, PythonValues& values) {
  return Listings(tokens, values).find();
}

}  // namespace mlenv
