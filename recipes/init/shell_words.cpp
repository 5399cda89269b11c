#include "recipes/init/shell_words.hpp"

#include <algorithm>
#include <array>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 14> kControl = {"if",   "then",  "else",  "elif", "fi",
                                                       "for",  "while", "until", "do",   "done",
                                                       "case", "esac",  "{",     "!"};

class Splitter {
 public:
  Splitter(std::string_view text, const DockerVariables& known) : text_(text), known_(known) {}

  std::vector<ShellCommand> split() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\'' || c == '"') return quote(c);
    if (c == '\\') return escaped();
    if (c == '$' || c == '`') return dollar();
    if (c == ' ' || c == '\t' || c == '\r') return end_word();
    if (c == '#' && !in_word_) return comment();
    if (c == '\n' || c == ';') return separator(1, true);
    sign(c);
  }

  bool comes(std::string_view sign) const { return text_.substr(at_).starts_with(sign); }

  void sign(char c) {
    // `pip install numpy>=1.2`: what is meant is the bound.
    if (in_word_ && comes(">=") && !all_digits(word_)) {
      put(c);
      return put_next();
    }
    if (comes("<(")) return substitution();
    if (c == '>' || c == '<' || comes("&>")) return redirection();
    if (c == '&') return comes("&&") ? separator(2, true) : separator(1, false);
    if (c == '|') return separator(comes("||") ? 2 : 1, false);
    if (c == '(' && command_.words.empty() && !in_word_) return group();
    if (c == '(' || c == ')') command_.simple = false;
    put(c);
    ++at_;
  }

  /// `(cd x && make)`
  void group() {
    const std::size_t end = closing_parenthesis(text_, at_);
    command_.control = end == std::string_view::npos || !command_.group.empty() ||
                       text_.substr(at_).starts_with("((");
    if (command_.control) {
      put(text_[at_++]);
      return;
    }
    command_.group = trim(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
  }

  /// `> file`, `2>&1`, `&> file`, `< file`; a heredoc or a process is no file.
  void redirection() {
    // The number before it is a descriptor's.
    if (all_digits(word_)) {
      word_.clear();
      in_word_ = false;
    }
    finish_word();
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_not_of("<>&|", at_), text_.size());
    const std::string_view mark = text_.substr(begin, at_ - begin);
    const bool process = at_ < text_.size() && text_[at_] == '(';
    if (process || mark.starts_with("<<") || mark == "<&" || mark == "<>") {
      command_.simple = false;
    } else {
      redirected_ = mark;
    }
  }

  /// What a redirection names.
  void redirect(const std::string& to) {
    const bool duplicates = redirected_.ends_with('&') && (all_digits(to) || to == "-");
    if (redirected_ == "<") {
      command_.input = to;
    } else if (to != "/dev/null" && !duplicates) {
      command_.simple = false;
    }
    redirected_ = {};
  }

  void put(char c) {
    in_word_ = true;
    word_ += c;
  }

  void put_next() {
    put(text_[++at_]);
    ++at_;
  }

  void quote(char mark) {
    in_word_ = true;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != mark) {
      if (mark == '"' && text_[at_] == '\\') ++at_;
      ++at_;
    }
    if (at_ >= text_.size()) {
      command_.simple = false;
      at_ = text_.size();
    }
    const std::string_view inner = text_.substr(begin, at_ - begin);
    ++at_;
    word_ += mark == '"' ? in_double_quotes(inner) : std::string(inner);
  }

  std::string in_double_quotes(std::string_view inner) {
    if (inner.find('`') != std::string_view::npos || inner.find("$(") != std::string_view::npos) {
      command_.simple = false;
    }
    bool complete = true;
    std::string out;
    const std::string expanded = expand_variables(inner, known_, complete);
    if (!complete) command_.simple = false;
    for (std::size_t i = 0; i < expanded.size(); ++i) {
      const bool escape = expanded[i] == '\\' && i + 1 < expanded.size() &&
                          (expanded[i + 1] == '"' || expanded[i + 1] == '\\');
      if (escape) ++i;
      out += expanded[i];
    }
    return out;
  }

  void escaped() {
    ++at_;
    if (at_ >= text_.size()) return;
    if (text_[at_] != '\n') put(text_[at_]);
    ++at_;
  }

  void dollar() {
    if (text_[at_] == '`' || text_.substr(at_).starts_with("$(")) return substitution();
    const std::size_t end = variable_end(text_, at_);
    bool complete = true;
    const std::string value = expand_variables(text_.substr(at_, end - at_), known_, complete);
    if (!complete) command_.simple = false;
    at_ = end;
    // Outside quotes a value falls apart at its blanks.
    for (const char c : value) {
      if (c == ' ' || c == '\t' || c == '\n') {
        finish_word();
      } else {
        put(c);
      }
    }
  }

  /// `$(cat list.txt)`, `<(cat list.txt)`: one word, or a part of one.
  void substitution() {
    command_.simple = false;
    const bool old = text_[at_] == '`';
    const std::size_t last = old ? text_.find('`', at_ + 1) : closing_parenthesis(text_, at_ + 1);
    const std::size_t end = last == std::string_view::npos ? text_.size() : last + 1;
    in_word_ = true;
    word_ += text_.substr(at_, end - at_);
    at_ = end;
  }

  void comment() { at_ = std::min(text_.find('\n', at_), text_.size()); }

  void finish_word() {
    if (in_word_ && !redirected_.empty()) {
      redirect(word_);
    } else if (in_word_) {
      command_.words.push_back(std::move(word_));
    }
    word_.clear();
    in_word_ = false;
  }
  void end_word() {
    finish_word();
    ++at_;
  }

  void separator(std::size_t length, bool plain) {
    if (!plain) command_.alone = false;
    end_command();
    at_ += length;
    begin_ = at_;
    if (!plain) command_.alone = false;
  }

  void end_command() {
    finish_word();
    command_.text = trim(text_.substr(begin_, std::min(at_, text_.size()) - begin_));
    if (!redirected_.empty()) command_.simple = false;
    redirected_ = {};
    const bool grouped = !command_.group.empty();
    if (!command_.words.empty()) {
      command_.control = command_.control || grouped || is_among(kControl, command_.words.front());
    }
    const bool redirects = !command_.input.empty() || !command_.simple;
    if (!command_.words.empty() || grouped || redirects) commands_.push_back(std::move(command_));
    command_ = {};
  }

  std::string_view text_;
  const DockerVariables& known_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
  std::string word_;
  bool in_word_ = false;
  std::string_view redirected_;  ///< the sign whose file comes next
  ShellCommand command_;
  std::vector<ShellCommand> commands_;
};

}  // namespace

std::size_t find_unquoted(std::string_view text, std::size_t at,
                          const std::function<bool(char)>& is_wanted) {
  char quote = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && quote != '\'') {
      ++at;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (is_wanted(c)) {
      return at;
    }
  }
  return std::string_view::npos;
}

std::size_t closing_parenthesis(std::string_view text, std::size_t at) {
  int depth = 0;
  return find_unquoted(text, at, [&](char c) {
    if (c == '(') ++depth;
    return c == ')' && --depth == 0;
  });
}

std::vector<ShellCommand> shell_commands(std::string_view text, const DockerVariables& known) {
  return Splitter(text, known).split();
}

}  // namespace mlenv
