#include "images/inspect/python_loads.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "base/paths.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kLargestModule = std::uint64_t{1} << 20U;
constexpr std::size_t kMostLoads = 64;
constexpr std::size_t kMostLoadNames = 16;
constexpr std::size_t kLongestLibrary = 64;
constexpr std::size_t kLongestLine = 20'000;  // in tokens, as the next
constexpr std::size_t kLongestCall = 200;

/// Functions that load a library or look for one, in lower case, without underscores before them.
constexpr std::array<std::string_view, 6> kLoaders = {"cdll",         "pydll",  "loadlibrary",
                                                      "load_library", "dlopen", "find_library"};
constexpr std::array<std::string_view, 13> kOtherSystems = {
    "win32", "darwin", "'nt'",   "\"nt\"", "Windows", "Darwin", "cygwin",
    "macos", "MACOS",  "is_win", "IS_WIN", "WINDOWS", "iswin"};
constexpr std::array<std::string_view, 5> kOtherTests = {"linux", "Linux", "!=", " not ", "posix"};
/// Words of a call that finds a file beside the module.
constexpr std::array<std::string_view, 6> kBesideModule = {"join", "dirname",  "__file__",
                                                           "Path", "joinpath", "resources"};

template <std::size_t N>
bool holds_any(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return text.find(word) != std::string_view::npos;
  });
}

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr bool is_name_char(char c) { return is_alphanumeric(c) || c == '_'; }

bool is_loader(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('_'), name.size()));
  return is_one_of(to_lower(name), kLoaders);
}

bool is_library_name(std::string_view text) {
  if (text.size() < 2 || text.size() > kLongestLibrary) return false;
  if (text.ends_with(".dll") || text.ends_with(".dylib") || text.ends_with(".pyd")) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || c == '.' || c == '_' || c == '-' || c == '+';
  });
}

/// A piece of Python's text: a name, a text in quotes, or a sign.
struct Token {
  enum class Kind { end, name, text, sign, line_end };
  Kind kind = Kind::end;
  std::string_view words;  ///< of a text its content
  bool is_plain = true;    ///< of a text: no f-string
  std::size_t start = 0;
};

class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) {}

  Token next() {
    skip_blanks();
    if (at_ >= text_.size()) return {};
    const std::size_t start = at_;
    const char c = text_[at_];
    if (c == '\n') return {Token::Kind::line_end, text_.substr(at_++, 1), true, start};
    if (c == '"' || c == '\'') return quoted(start, true);
    if (!is_name_char(c)) return {Token::Kind::sign, text_.substr(at_++, 1), true, start};
    while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    const bool is_prefix = name.size() <= 2 && at_ < text_.size() &&
                           (text_[at_] == '"' || text_[at_] == '\'') &&
                           name.find_first_not_of("rRbBuUfF") == std::string_view::npos;
    if (is_prefix) return quoted(start, name.find_first_of("fF") == std::string_view::npos);
    return {Token::Kind::name, name, true, start};
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
        ++at_;
      } else if (c == '\\' && text_.substr(at_ + 1, 1) == "\n") {
        at_ += 2;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  Token quoted(std::size_t start, bool is_plain) {
    const char quote = text_[at_];
    const bool is_long = text_.substr(at_, 3) == std::string(3, quote);
    const std::size_t width = is_long ? 3 : 1;
    at_ += width;
    const std::size_t from = at_;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        at_ += 2;
        continue;
      }
      const bool ends = is_long ? text_.substr(at_, 3) == std::string(3, quote)
                                : text_[at_] == quote || text_[at_] == '\n';
      if (ends) break;
      ++at_;
    }
    const std::size_t end = std::min(at_, text_.size());
    at_ = std::min(end + width, text_.size());
    return {Token::Kind::text, text_.substr(from, end - from), is_plain, start};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Goes through a module line by line: a line ends where no bracket is open.
class ModuleReader {
 public:
  explicit ModuleReader(std::string_view text) : text_(text), tokens_(text) {}

  std::vector<LibraryLoad> read() {
    std::vector<Token> line;
    int depth = 0;
    for (Token token = tokens_.next(); token.kind != Token::Kind::end; token = tokens_.next()) {
      if (token.kind == Token::Kind::line_end) {
        if (depth > 0 && line.size() < kLongestLine) continue;
        take_line(line);
        line.clear();
        depth = 0;
        continue;
      }
      if (token.kind == Token::Kind::sign) {
        if (token.words == "(" || token.words == "[" || token.words == "{") ++depth;
        if (token.words == ")" || token.words == "]" || token.words == "}") --depth;
      }
      line.push_back(token);
    }
    take_line(line);
    return std::move(loads_);
  }

 private:
  enum class Block { function, guarded, foreign };
  struct Open {
    std::size_t indent;
    Block block;
  };

  void take_line(const std::vector<Token>& line) {
    if (line.empty()) return;
    const std::size_t newline = text_.rfind('\n', line.front().start);
    const std::size_t begin =
        newline == std::string_view::npos || line.front().start == 0 ? 0 : newline + 1;
    const std::size_t indent = line.front().start - begin;
    while (!open_.empty() && open_.back().indent >= indent) open_.pop_back();
    open_block(line, indent);
    remember_names(line);
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      if (is_call(line, i)) take_call(line, i);
    }
  }

  void open_block(const std::vector<Token>& line, std::size_t indent) {
    const std::string_view first = line.front().words;
    if (line.front().kind != Token::Kind::name) return;
    if (first == "def" || first == "async") return open_.push_back({indent, Block::function});
    if (first == "try" || first == "except") return open_.push_back({indent, Block::guarded});
    if (first != "if" && first != "elif") return;
    const std::size_t start = line.front().start;
    const std::string_view words = text_.substr(start, line.back().start - start + 1);
    if (words.find("__name__") != std::string_view::npos) {
      return open_.push_back({indent, Block::function});
    }
    if (holds_any(words.substr(0, words.find('\n')), kOtherSystems) &&
        !holds_any(words, kOtherTests)) {
      open_.push_back({indent, Block::foreign});
    }
  }

  bool is_within(Block block) const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](const Open& one) { return one.block == block; });
  }

  /// `NAME = …` and `for NAME in …:` with names of libraries on the right.
  void remember_names(const std::vector<Token>& line) {
    std::size_t name = 0;
    if (line.front().words == "for" && line.size() > 2 && line[2].words == "in") name = 1;
    const bool assigns = name == 0 && line.size() > 2 && line[1].words == "=";
    if (line[name].kind != Token::Kind::name || (name == 0 && !assigns)) return;
    std::vector<std::string> found = names_in(line, name + 2, line.size());
    if (!found.empty()) assigned_.insert_or_assign(std::string(line[name].words), std::move(found));
  }

  static std::vector<std::string> names_in(const std::vector<Token>& line, std::size_t from,
                                           std::size_t to) {
    std::vector<std::string> names;
    for (std::size_t i = from; i < to && names.size() < kMostLoadNames; ++i) {
      const Token& one = line[i];
      if (one.kind == Token::Kind::text && one.is_plain && is_library_name(one.words)) {
        names.emplace_back(one.words);
      }
    }
    return names;
  }

  static bool is_call(const std::vector<Token>& line, std::size_t i) {
    if (line[i].kind != Token::Kind::name || line[i + 1].words != "(") return false;
    if (!is_loader(line[i].words)) return false;
    if (i > 0 && line[i - 1].words == "def") return false;
    return i < 2 || to_lower(line[i - 2].words).find("win") == std::string::npos;
  }

  void take_call(const std::vector<Token>& line, std::size_t call) {
    std::size_t end = call + 2;
    if (end >= line.size()) return;  // the file ends there
    const std::size_t most = std::min(line.size(), end + kLongestCall);
    for (int depth = 1; end < most && depth > 0; ++end) {
      if (line[end].kind != Token::Kind::sign) continue;
      if (line[end].words == "(") ++depth;
      if (line[end].words == ")") --depth;
    }
    const auto first = line.begin() + static_cast<std::ptrdiff_t>(call) + 2;
    const auto last = line.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::any_of(first, last, [](const Token& one) {
          return one.kind == Token::Kind::name && is_one_of(one.words, kBesideModule);
        })) {
      return;
    }
    LibraryLoad load;
    load.names = names_in(line, call + 2, end);
    if (load.names.empty() && first->kind == Token::Kind::name) {
      const auto known = assigned_.find(std::string(first->words));
      if (known != assigned_.end()) load.names = known->second;
    }
    if (load.names.empty() || is_within(Block::foreign) || loads_.size() >= kMostLoads) return;
    load.at_import = !is_within(Block::function) && !is_within(Block::guarded);
    if (std::find(loads_.begin(), loads_.end(), load) == loads_.end()) {
      loads_.push_back(std::move(load));
    }
  }

  std::string_view text_;
  Tokens tokens_;
  std::vector<Open> open_;
  std::map<std::string, std::vector<std::string>> assigned_;
  std::vector<LibraryLoad> loads_;
};

}  // namespace

bool may_load_libraries(std::string_view path, std::uint64_t bytes) {
  constexpr std::array<std::string_view, 4> kNotImported = {"/tests/", "/test/", "/testing/",
                                                            "/pip/"};
  return bytes > 0 && bytes <= kLargestModule && path.ends_with(".py") &&
         path.find("-packages/") != std::string_view::npos &&
         !path.starts_with("usr/lib/python3/dist-packages/") && !holds_any(path, kNotImported) &&
         !last_part(path).starts_with("test_");
}

std::vector<LibraryLoad> library_loads(std::string_view python) {
  constexpr std::array<std::string_view, 5> kMarks = {"DLL", "dlopen", "find_library",
                                                      "LoadLibrary", "load_library"};
  if (!holds_any(python, kMarks)) return {};
  return ModuleReader{python}.read();
}

std::string render_loads(const std::vector<LibraryLoad>& loads) {
  std::string text;
  for (const LibraryLoad& one : loads) {
    text += one.at_import ? '+' : '-';
    for (const std::string& name : one.names) text.append(1, ' ').append(name);
    text += '\n';
  }
  return text;
}

std::vector<LibraryLoad> read_loads(std::string_view text) {
  std::vector<LibraryLoad> loads;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> parts = split(line, ' ');
    if (parts.size() < 2) continue;
    loads.push_back({parts[0] == "+", {parts.begin() + 1, parts.end()}});
  }
  return loads;
}

}  // namespace mlenv
