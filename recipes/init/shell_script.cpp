#include "recipes/init/shell_script.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

using ScriptKind = ShellNode::Kind;

/// A script that this one cannot read.
struct UnreadableScript {};

/// Words and signs of a script, one after the other.
class ScriptReader {
 public:
  explicit ScriptReader(std::string_view text) : text_(text) {}

  std::size_t at() const { return at_; }
  std::size_t behind() const { return behind_; }
  std::string_view between(std::size_t begin, std::size_t end) const {
    return trim(text_.substr(begin, end - begin));
  }

  void skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (text_.substr(at_).starts_with("\\\n")) {
        at_ += 2;
      } else if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else {
        return;
      }
    }
  }

  /// The next word or sign, which is not taken: empty at the end.
  std::string_view next() {
    skip_blanks();
    const std::size_t begin = at_;
    pass();
    const std::string_view found = text_.substr(begin, at_ - begin);
    at_ = begin;
    return found;
  }
  std::string_view take() {
    skip_blanks();
    const std::size_t begin = at_;
    pass();
    behind_ = at_;
    return text_.substr(begin, at_ - begin);
  }

  static bool is_sign(std::string_view token) {
    return token.empty() || std::string_view(";&|()\n").find(token.front()) != kNone;
  }

 private:
  static constexpr std::size_t kNone = std::string_view::npos;

  void pass() {
    if (at_ >= text_.size()) return;
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view sign : {";;", "&&", "||"}) {
      if (!rest.starts_with(sign)) continue;
      at_ += sign.size();
      return;
    }
    const bool redirects = rest.starts_with("&>");
    if (!redirects && std::string_view(";&|()\n").find(rest.front()) != kNone) {
      ++at_;
      return;
    }
    while (at_ < text_.size() && part_of_word()) {
    }
  }

  /// False at the end of the word.
  bool part_of_word() {
    const char c = text_[at_];
    if (c == '\\') {
      at_ = std::min(at_ + 2, text_.size());
    } else if (c == '\'' || c == '"' || c == '`') {
      quoted(c);
    } else if (c == '$' && at_ + 1 < text_.size() && text_[at_ + 1] == '{') {
      at_ = std::min(text_.find('}', at_), text_.size() - 1) + 1;
    } else if (c == '$' && at_ + 1 < text_.size() && text_[at_ + 1] == '(') {
      ++at_;
      parentheses();
    } else if (c == '<' || c == '>' || text_.substr(at_).starts_with("&>")) {
      redirection();
    } else if (std::string_view(" \t\r\n;&|()").find(c) != kNone) {
      return false;
    } else {
      ++at_;
    }
    return true;
  }

  void quoted(char mark) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != mark) {
      if (mark != '\'' && text_[at_] == '\\') ++at_;
      if (mark == '"' && text_.substr(at_).starts_with("$(")) {
        ++at_;
        parentheses();
      } else {
        ++at_;
      }
    }
    if (at_ >= text_.size()) throw UnreadableScript{};
    ++at_;
  }

  /// From the `(` to behind the `)` that closes it.
  void parentheses() {
    if (++depth_ > 20) throw UnreadableScript{};
    ++at_;
    while (at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_];
      if (c == '\\') {
        at_ += 2;
      } else if (c == '\'' || c == '"') {
        quoted(c);
      } else if (c == '(') {
        parentheses();
      } else {
        ++at_;
      }
    }
    if (at_ >= text_.size()) throw UnreadableScript{};
    ++at_;
    --depth_;
  }

  void redirection() {
    if (text_.substr(at_).starts_with("<<")) throw UnreadableScript{};
    at_ = std::min(text_.find_first_not_of("<>&|", at_), text_.size());
    if (at_ < text_.size() && text_[at_] == '(') parentheses();
  }

  friend class ScriptParser;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t behind_ = 0;  ///< what was taken last
  int depth_ = 0;
};

using Ends = std::initializer_list<std::string_view>;

class ScriptParser {
 public:
  explicit ScriptParser(std::string_view text) : reader_(text) {}

  ShellNode parse() {
    ShellNode whole = list({});
    if (!reader_.next().empty()) throw UnreadableScript{};
    return whole;
  }

 private:
  static constexpr int kMostDepth = 30;

  void want(std::string_view word) {
    if (reader_.take() != word) throw UnreadableScript{};
  }
  void skip_ends() {
    while (reader_.next() == ";" || reader_.next() == "\n") reader_.take();
  }
  ShellNode ended(ShellNode node, std::size_t begin) {
    node.text = reader_.between(begin, std::max(begin, reader_.behind()));
    return node;
  }

  /// Until one of `ends` stands where a command would.
  ShellNode list(Ends ends) {
    if (++depth_ > kMostDepth) throw UnreadableScript{};
    ShellNode node{ScriptKind::list};
    skip_ends();
    const std::size_t begin = reader_.at();
    char before = ';';
    while (!reader_.next().empty()) {
      const std::string_view next = reader_.next();
      if (std::find(ends.begin(), ends.end(), next) != ends.end()) break;
      if (next == ")" || next == ";;") break;
      node.parts.push_back(pipeline());
      node.before.push_back(before);
      const std::string_view sign = reader_.next();
      before = sign == "&&" ? '&' : sign == "||" ? '|' : ';';
      if (sign == ";;" || sign.empty() || !ScriptReader::is_sign(sign) || sign == ")") break;
      if (sign == "&") throw UnreadableScript{};
      reader_.take();
      skip_ends();
    }
    --depth_;
    return ended(std::move(node), begin);
  }

  ShellNode pipeline() {
    reader_.skip_blanks();
    const std::size_t begin = reader_.at();
    if (reader_.next() == "!") {
      reader_.take();
      ShellNode negated{ScriptKind::negated};
      negated.parts.push_back(pipeline());
      return ended(std::move(negated), begin);
    }
    ShellNode first = command();
    if (reader_.next() != "|") return first;
    while (reader_.next() == "|") {
      reader_.take();
      if (reader_.next() == "&") reader_.take();
      skip_ends();
      command();
    }
    ShellNode pipe;
    pipe.before.push_back('-');
    return ended(std::move(pipe), begin);
  }

  ShellNode command() {
    reader_.skip_blanks();
    const std::size_t begin = reader_.at();
    const std::string_view first = reader_.next();
    ShellNode node;
    if (first == "if") {
      node = condition();
    } else if (first == "case") {
      node = choice();
    } else if (first == "for") {
      node = items();
    } else if (first == "while" || first == "until") {
      node = loop();
    } else if (first == "{") {
      reader_.take();
      node.kind = ScriptKind::braces;
      node.parts.push_back(list({"}"}));
      want("}");
    } else {
      return simple(begin);
    }
    const std::size_t end = reader_.behind();
    while (!ScriptReader::is_sign(reader_.next())) reader_.take();
    node.redirected = reader_.behind() != end;
    return ended(std::move(node), begin);
  }

  ShellNode simple(std::size_t begin) {
    if (reader_.next() == "(") {
      if (reader_.text_.substr(reader_.at_).starts_with("((")) throw UnreadableScript{};
      reader_.parentheses();
      reader_.behind_ = reader_.at_;
    } else if (reader_.next() == "[[") {
      while (reader_.next() != "]]") {
        if (reader_.take().empty()) throw UnreadableScript{};
      }
    }
    constexpr std::array<std::string_view, 7> kLost = {"then", "fi",   "do",      "done",
                                                       "esac", "elif", "function"};
    if (is_among(kLost, reader_.next())) throw UnreadableScript{};
    while (!ScriptReader::is_sign(reader_.next())) reader_.take();
    if (reader_.next() == "(" || reader_.behind() <= begin) throw UnreadableScript{};
    return ended({}, begin);
  }

  ShellNode condition() {
    ShellNode node{ScriptKind::condition};
    do {
      reader_.take();  // `if`, `elif`
      node.parts.push_back(list({"then"}));
      want("then");
      node.parts.push_back(list({"elif", "else", "fi"}));
    } while (reader_.next() == "elif");
    if (reader_.next() == "else") {
      reader_.take();
      node.parts.push_back(list({"fi"}));
    }
    want("fi");
    return node;
  }

  ShellNode choice() {
    ShellNode node{ScriptKind::choice};
    reader_.take();
    node.words = reader_.take();
    skip_ends();
    want("in");
    skip_ends();
    while (reader_.next() != "esac") {
      if (reader_.next() == "(") reader_.take();
      reader_.skip_blanks();
      const std::size_t begin = reader_.at();
      while (reader_.next() != ")") {
        if (reader_.take().empty()) throw UnreadableScript{};
      }
      node.patterns.push_back(reader_.between(begin, reader_.behind()));
      reader_.take();
      node.parts.push_back(list({"esac"}));
      if (reader_.next() == ";;") reader_.take();
      skip_ends();
    }
    want("esac");
    return node;
  }

  ShellNode items() {
    ShellNode node{ScriptKind::items};
    reader_.take();
    node.name = reader_.take();
    skip_ends();
    want("in");
    reader_.skip_blanks();
    const std::size_t begin = reader_.at();
    while (!ScriptReader::is_sign(reader_.next())) reader_.take();
    node.words = reader_.between(begin, std::max(begin, reader_.behind()));
    skip_ends();
    want("do");
    node.parts.push_back(list({"done"}));
    want("done");
    return node;
  }

  ShellNode loop() {
    ShellNode node{ScriptKind::loop};
    reader_.take();
    node.parts.push_back(list({"do"}));
    want("do");
    node.parts.push_back(list({"done"}));
    want("done");
    return node;
  }

  ScriptReader reader_;
  int depth_ = 0;
};

}  // namespace

std::optional<ShellNode> read_shell_script(std::string_view text) {
  try {
    return ScriptParser(text).parse();
  } catch (const UnreadableScript&) {
    return std::nullopt;
  }
}

}  // namespace mlenv
