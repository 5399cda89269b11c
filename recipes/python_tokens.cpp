#include "recipes/python_tokens.hpp"

#include <algorithm>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

class PythonLexer {
 public:
  explicit PythonLexer(std::string_view text) : text_(text) {}

  std::vector<PythonToken> read() {
    while (at_ < text_.size()) step();
    put(PythonToken::Kind::line_end, "");
    return std::move(tokens_);
  }

 private:
  void put(PythonToken::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), true, false, line_});
  }

  void step() {
    const char c = text_[at_];
    if (c == '\n') {
      line_end();
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
      number();
    } else {
      sign(c);
    }
  }

  void line_end() {
    if (depth_ == 0) put(PythonToken::Kind::line_end, "");
    ++line_;
    line_begin_ = ++at_;
  }

  void number() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_alphanumeric(text_[at_]) || text_[at_] == '.')) ++at_;
    put(PythonToken::Kind::number, std::string(text_.substr(begin, at_ - begin)));
  }

  void sign(char c) {
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if ((c == ')' || c == ']' || c == '}') && depth_ > 0) --depth_;
    if (!is_blank(c) && c != '\r') put(PythonToken::Kind::sign, std::string(1, c));
    ++at_;
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
    put(PythonToken::Kind::name, word);
    tokens_.back().margin = begin == line_begin_;
  }

  void quoted(bool raw, bool format) {
    const std::string one(1, text_[at_]);
    const std::string three(3, text_[at_]);
    const bool triple = text_.substr(at_).starts_with(three);
    const std::string& mark = triple ? three : one;
    const int line = line_;
    at_ += mark.size();
    std::string out;
    while (at_ < text_.size() && !text_.substr(at_).starts_with(mark)) {
      if (!triple && text_[at_] == '\n') break;  // no text of Python's
      character(raw, out);
    }
    at_ = std::min(at_ + mark.size(), text_.size());
    const bool fields = format && out.find('{') != std::string::npos;
    tokens_.push_back({PythonToken::Kind::text, std::move(out), !fields, false, line});
  }

  /// One of a text.
  void character(bool raw, std::string& out) {
    const bool escaped = text_[at_] == '\\' && at_ + 1 < text_.size();
    if (escaped) {
      if (raw) out += '\\';
      ++at_;
    }
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (escaped && c == '\n') return;
    out += escaped && !raw && c == 'n' ? '\n' : c;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_begin_ = 0;
  int line_ = 1;
  int depth_ = 0;
  std::vector<PythonToken> tokens_;
};

}  // namespace

std::vector<PythonToken> python_tokens(std::string_view text) { return PythonLexer(text).read(); }

bool is_sign(const PythonToken& token, char c) {
  return token.kind == PythonToken::Kind::sign && token.text[0] == c;
}

int depth_change(const PythonToken& token) {
  if (token.kind != PythonToken::Kind::sign) return 0;
  if (std::string_view("([{").find(token.text[0]) != std::string_view::npos) return 1;
  return std::string_view(")]}").find(token.text[0]) != std::string_view::npos ? -1 : 0;
}

std::size_t expression_length(PythonTokens tokens) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const int change = depth_change(tokens[i]);
    if (depth == 0 &&
        (change < 0 || is_sign(tokens[i], ',') || tokens[i].kind == PythonToken::Kind::line_end)) {
      return i;
    }
    depth += change;
  }
  return tokens.size();
}

std::size_t bracket_length(PythonTokens tokens) {
  int depth = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    depth += depth_change(tokens[i]);
    if (depth == 0) return i + 1;
  }
  return 0;
}

}  // namespace mlenv
