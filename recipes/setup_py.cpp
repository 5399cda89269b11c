#include "recipes/setup_py.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

struct PythonToken {
  enum class Kind { name, text, number, sign, line_end };
  Kind kind = Kind::sign;
  std::string text;
  bool plain = true;    ///< of a text: no f-string with fields
  bool margin = false;  ///< it begins its line
  int line = 0;
};
using PythonTokens = std::span<const PythonToken>;
using TokenKind = PythonToken::Kind;

/// Python's tokens, as far as texts, names and brackets go (its reference, "Lexical analysis").
class PythonLexer {
 public:
  explicit PythonLexer(std::string_view text) : text_(text) {}

  std::vector<PythonToken> read() {
    while (at_ < text_.size()) step();
    put(TokenKind::line_end, "");
    return std::move(tokens_);
  }

 private:
  void put(TokenKind kind, std::string text, bool plain = true) {
    tokens_.push_back({kind, std::move(text), plain, false, line_});
  }
  void next_line() {
    ++line_;
    line_begin_ = at_ + 1;
  }

  // NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      if (depth_ == 0) put(TokenKind::line_end, "");
      next_line();
      ++at_;
    } else if (c == '\\' && at_ + 1 < text_.size()) {
      if (text_[at_ + 1] == '\n') ++line_;
      at_ += 2;
    } else if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '"' || c == '\'') {
      quoted(false, false);
    } else if (is_letter(c) || c == '_') {
      word();
    } else if (is_digit(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && (is_alphanumeric(text_[at_]) || text_[at_] == '.')) ++at_;
      put(TokenKind::number, std::string(text_.substr(begin, at_ - begin)));
    } else {
      if (c == '(' || c == '[' || c == '{') ++depth_;
      if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
      if (!is_blank(c) && c != '\r') put(TokenKind::sign, std::string(1, c));
      ++at_;
    }
  }

  void word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_alphanumeric(text_[at_]) || text_[at_] == '_')) ++at_;
    const std::string word(text_.substr(begin, at_ - begin));
    const bool prefix = word.size() <= 2 && word.find_first_not_of("rRbBuUfF") == std::string::npos;
    if (prefix && at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      return quoted(word.find_first_of("rR") != std::string::npos,
                    word.find_first_of("fF") != std::string::npos);
    }
    put(TokenKind::name, word);
    tokens_.back().margin = begin == line_begin_;
  }

  // NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
  void quoted(bool raw, bool format) {
    const char mark = text_[at_];
    const std::string three(3, mark);
    const bool triple = text_.substr(at_).starts_with(three);
    const int line = line_;
    at_ += triple ? 3 : 1;
    std::string out;
    while (at_ < text_.size()) {
      if (triple ? text_.substr(at_).starts_with(three) : text_[at_] == mark) break;
      if (!triple && text_[at_] == '\n') break;  // no text of Python's
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        if (raw) out += '\\';
        ++at_;
        if (text_[at_] == '\n') {
          ++line_;
        } else {
          out += text_[at_] == 'n' && !raw ? '\n' : text_[at_];
        }
      } else {
        out += text_[at_];
      }
      ++at_;
    }
    at_ = std::min(at_ + (triple ? 3 : 1), text_.size());
    const bool fields = format && out.find('{') != std::string::npos;
    tokens_.push_back({TokenKind::text, std::move(out), !fields, false, line});
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  int depth_ = 0;
  std::vector<PythonToken> tokens_;
};

bool is_sign(const PythonToken& token, char c) {
  return token.kind == TokenKind::sign && token.text[0] == c;
}
int depth_change(const PythonToken& token) {
  if (token.kind != TokenKind::sign) return 0;
  return std::string_view("([{").find(token.text[0]) != std::string_view::npos   ? 1
         : std::string_view(")]}").find(token.text[0]) != std::string_view::npos ? -1
                                                                                 : 0;
}

/// How many tokens an expression has: up to a `,` or closing bracket of its own level, or a line's
/// end.
std::size_t expression_length(PythonTokens tokens) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int change = depth_change(tokens[i]);
    if (depth == 0 &&
        (change < 0 || is_sign(tokens[i], ',') || tokens[i].kind == TokenKind::line_end)) {
      return i;
    }
    depth += change;
  }
  return tokens.size();
}

/// A plain value: one text, or a list of texts.
struct PlainValue {
  bool list = false;
  std::vector<std::string> items;
};

class SetupReader {
 public:
  explicit SetupReader(std::string_view text) : tokens_(PythonLexer(text).read()) {}

  SetupFacts read() {
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      const PythonToken& token = tokens_[i];
      if (token.kind != TokenKind::name) continue;
      const bool first = i == 0 || tokens_[i - 1].kind == TokenKind::line_end;
      if (first && is_sign(tokens_[i + 1], '=') && !is_sign(at(i + 2), '=')) {
        // What a condition or a function assigns, or is assigned again, is computed.
        if (!token.margin || !assigned_.emplace(token.text, expression(i + 2)).second) {
          changed_.insert(token.text);
        }
      } else if (first && (is_sign(tokens_[i + 1], '.') || is_sign(at(i + 2), '='))) {
        changed_.insert(token.text);  // `x.append(…)`, `x += …`
      } else if (token.text == "setup" && is_sign(tokens_[i + 1], '(') &&
                 (i == 0 || tokens_[i - 1].text != "def")) {
        facts_.calls_setup = true;
        arguments(i + 2);
      }
    }
    return std::move(facts_);
  }

 private:
  const PythonToken& at(std::size_t i) const { return tokens_[std::min(i, tokens_.size() - 1)]; }
  PythonTokens expression(std::size_t begin) const {
    const PythonTokens rest = PythonTokens(tokens_).subspan(std::min(begin, tokens_.size()));
    return rest.first(expression_length(rest));
  }

  void arguments(std::size_t begin) {
    for (std::size_t i = begin; i < tokens_.size();) {
      const PythonTokens one = expression(i);
      if (one.size() > 2 && one[0].kind == TokenKind::name && is_sign(one[1], '=')) {
        argument(one[0], one.subspan(2));
      } else if (one.size() > 2 && is_sign(one[0], '*') && is_sign(one[1], '*')) {
        dictionary(one.subspan(2));
      }
      i += one.size();
      if (!is_sign(at(i), ',')) return;
      ++i;
    }
  }

  /// `**dict(name="x")`, `**{"name": "x"}`, or a name that has such a value.
  void dictionary(PythonTokens value) {
    if (value.size() == 1 && assigned_.contains(value[0].text)) value = assigned_[value[0].text];
    if (value.size() > 2 && value[0].text == "dict" && is_sign(value[1], '(')) {
      for (std::size_t i = 2; i < value.size();) {
        const PythonTokens rest = value.subspan(i);
        const PythonTokens one = rest.first(expression_length(rest));
        if (one.size() > 2 && is_sign(one[1], '=')) argument(one[0], one.subspan(2));
        i += one.size() + 1;
      }
    }
    if (value.empty() || !is_sign(value[0], '{')) return;
    for (std::size_t i = 1; i < value.size();) {
      const PythonTokens rest = value.subspan(i);
      const PythonTokens one = rest.first(expression_length(rest));
      if (one.size() > 2 && is_sign(one[1], ':')) argument(one[0], one.subspan(2));
      i += one.size() + 1;
    }
  }

  void argument(const PythonToken& key, PythonTokens value) {
    if (key.text == "name") facts_.name = single(value);
    if (key.text == "python_requires") facts_.python = single(value);
    if (key.text == "extras_require") extras(value);
    if (key.text == "ext_modules") {
      for (const PythonToken& token : value) facts_.ext_modules.push_back(token.text);
    }
    if (key.text != "install_requires" && key.text != "requires") return;
    facts_.line = key.line;
    if (auto items = plain(value, 0)) {
      facts_.requires_ = SetupFacts::Texts{std::move(items->items), key.line};
    } else if (key.text == "install_requires") {
      facts_.computed = true;
      named_files(value, 0);
    }
  }

  std::optional<std::string> single(PythonTokens value) {
    const auto found = plain(value, 0);
    if (!found || found->list || found->items.size() != 1) return std::nullopt;
    return found->items.front();
  }

  void extras(PythonTokens value) {
    if (value.size() == 1 && assigned_.contains(value[0].text)) value = assigned_[value[0].text];
    int depth = 0;
    for (std::size_t i = 0; i + 1 < value.size(); ++i) {
      depth += depth_change(value[i]);
      if (depth == 1 && value[i].kind == TokenKind::text && is_sign(value[i + 1], ':')) {
        facts_.extras.emplace(value[i].text, value[i].line);
      }
    }
  }

  /// nullopt: computed in another way.
  // NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
  std::optional<PlainValue> plain(PythonTokens value, int depth) {
    constexpr int kDeepest = 20;
    if (value.empty() || depth > kDeepest || --steps_ < 0) return std::nullopt;
    PlainValue all;
    bool want = true;  // a value, not a `+`
    for (std::size_t i = 0; i < value.size();) {
      if (is_sign(value[i], '+') && !want) {
        want = true;
        ++i;
        continue;
      }
      std::optional<PlainValue> one;
      std::size_t took = 1;
      if (value[i].kind == TokenKind::text) {
        // Neighbours are one text.
        one = PlainValue{false, {value[i].text}};
        bool whole = value[i].plain;
        for (; i + took < value.size() && value[i + took].kind == TokenKind::text; ++took) {
          one->items.front() += value[i + took].text;
          whole = whole && value[i + took].plain;
        }
        if (!whole) return std::nullopt;
      } else if (!want) {
        return std::nullopt;
      } else if (is_sign(value[i], '[') || is_sign(value[i], '(')) {
        took = bracket_length(value.subspan(i));
        if (took < 2) return std::nullopt;
        one = items(value.subspan(i + 1, took - 2), is_sign(value[i], '('), depth);
      } else if (value[i].kind == TokenKind::name && assigned_.contains(value[i].text) &&
                 !changed_.contains(value[i].text)) {
        one = plain(assigned_[value[i].text], depth + 1);
      }
      if (!one) return std::nullopt;
      for (const std::string& item : one->items) {
        if (item.size() >= bytes_) return std::nullopt;
        bytes_ -= item.size();
      }
      if (all.items.empty() || all.list || one->list) {
        all.list = all.list || one->list;
        all.items.insert(all.items.end(), one->items.begin(), one->items.end());
      } else {
        all.items.back() += one->items.front();
      }
      want = false;
      i += took;
      if (all.items.size() > 10'000) return std::nullopt;
    }
    return all;
  }

  static std::size_t bracket_length(PythonTokens tokens) {
    int depth = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      depth += depth_change(tokens[i]);
      if (depth == 0) return i + 1;
    }
    return 0;
  }

  std::optional<PlainValue> items(PythonTokens inner, bool round, int depth) {
    PlainValue all{true, {}};
    bool commas = false;
    for (std::size_t i = 0; i < inner.size();) {
      const PythonTokens rest = inner.subspan(i);
      const PythonTokens one = rest.first(expression_length(rest));
      const auto value = plain(one, depth + 1);
      if (!value) return std::nullopt;
      all.items.insert(all.items.end(), value->items.begin(), value->items.end());
      i += one.size();
      commas = commas || i < inner.size();
      ++i;
    }
    if (round && !commas && all.items.size() == 1) all.list = false;  // ("a")
    return all;
  }

  /// Of `open("requirements.txt")`, wherever on the way to the value it stands.
  void named_files(PythonTokens value, int depth) {
    if (depth > 4) return;
    for (const PythonToken& token : value) {
      if (--steps_ < 0) return;
      if (token.kind == TokenKind::text && token.text.ends_with(".txt") &&
          std::find(facts_.files.begin(), facts_.files.end(), token.text) == facts_.files.end()) {
        facts_.files.push_back(token.text);
      }
      if (token.kind != TokenKind::name) continue;
      if (const auto found = assigned_.find(token.text); found != assigned_.end()) {
        named_files(found->second, depth + 1);
      }
      named_in_function(token.text, depth);
    }
  }

  /// What the body of a function of that name, or of a `with` that assigns it, mentions.
  void named_in_function(const std::string& name, int depth) {
    if (!searched_.insert(name).second || searched_.size() > kMostSearched) return;
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      const bool defined = tokens_[i].text == "def" && tokens_[i + 1].text == name;
      const bool filled = tokens_[i].kind == TokenKind::name && tokens_[i].text == name &&
                          is_sign(tokens_[i + 1], '=') && i > 1;
      if (!defined && !filled) continue;
      const std::size_t begin = defined ? i : i - std::min<std::size_t>(i, 20);
      const std::size_t end = std::min(tokens_.size(), i + (defined ? 80U : 20U));
      for (std::size_t j = begin; j < end; ++j) {
        if (j > i + 1 && defined && tokens_[j].text == "def") break;
        if (tokens_[j].kind == TokenKind::text && tokens_[j].text.ends_with(".txt") &&
            tokens_[j].text.find("requirement") != std::string::npos &&
            std::find(facts_.files.begin(), facts_.files.end(), tokens_[j].text) ==
                facts_.files.end()) {
          facts_.files.push_back(tokens_[j].text);
        }
      }
      if (depth > 4) return;
    }
  }

  static constexpr std::size_t kMostSearched = 200;
  std::vector<PythonToken> tokens_;
  std::map<std::string, PythonTokens> assigned_;
  std::set<std::string> changed_;              ///< by more than one plain assignment at the margin
  std::set<std::string> searched_;             ///< for files that they are read from
  int steps_ = 20'000;                         ///< that a file may cost: it may be anybody's
  std::size_t bytes_ = std::size_t{4} << 20U;  ///< of texts that it may come to
  SetupFacts facts_;
};

}  // namespace

SetupFacts read_setup_py(std::string_view text) { return SetupReader(text).read(); }

// NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
SetupFacts read_setup_cfg(std::string_view text) {
  SetupFacts facts;
  std::string section;
  std::string key;
  int number = 0;
  const auto take = [&](std::string_view value) {
    if (value.empty()) return;
    if (section == "metadata" && key == "name" && !facts.name) facts.name = value;
    if (section == "options" && key == "python_requires" && !facts.python) facts.python = value;
    if (section != "options" || key != "install_requires") return;
    if (value.starts_with("file:")) {
      facts.computed = true;
      facts.files.emplace_back(trim(value.substr(5)));
      return;
    }
    if (!facts.requires_) facts.requires_ = SetupFacts::Texts{{}, number};
    facts.requires_->items.emplace_back(value);
  };
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view whole = trim(line);
    if (whole.empty() || whole.front() == '#' || whole.front() == ';') continue;
    if (whole.front() == '[' && whole.find(']') != std::string_view::npos &&
        !is_blank(line.front())) {
      section = trim(whole.substr(1, whole.find(']') - 1));
      key.clear();
      continue;
    }
    if (is_blank(line.front())) {
      take(whole);
      continue;
    }
    const std::size_t equal = whole.find_first_of("=:");
    if (equal == std::string_view::npos) continue;
    key = to_lower(trim(whole.substr(0, equal)));
    if (section == "options" && key == "install_requires") facts.line = number;
    if (section == "options.extras_require") facts.extras.emplace(key, number);
    take(trim(whole.substr(equal + 1)));
  }
  return facts;
}

}  // namespace mlenv
