#include "recipes/marker.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kDeepest = 32;

/// With the older names that PEP 508 and setuptools still know.
constexpr std::array<std::string_view, 20> kVariables = {"python_version",
                                                         "python_full_version",
                                                         "os_name",
                                                         "sys_platform",
                                                         "platform_release",
                                                         "platform_system",
                                                         "platform_version",
                                                         "platform_machine",
                                                         "platform_python_implementation",
                                                         "implementation_name",
                                                         "implementation_version",
                                                         "extra",
                                                         "extras",
                                                         "dependency_groups",
                                                         "os.name",
                                                         "sys.platform",
                                                         "platform.version",
                                                         "platform.machine",
                                                         "platform.python_implementation",
                                                         "python_implementation"};
constexpr std::array<std::string_view, 8> kOperators = {
    "===", "==", "~=", "!=", "<=", ">=", "<", ">"};

class MarkerReader {
 public:
  explicit MarkerReader(std::string_view text) : text_(text) {}

  std::optional<RequirementMistake> read() {
    alternatives(0);
    skip_blanks();
    if (!mistake_ && at_ < text_.size()) fail(fmt::format("`{}` is too much", rest()));
    return mistake_;
  }

 private:
  std::string_view rest() const { return text_.substr(at_); }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  void fail(std::string message) {
    if (!mistake_) mistake_ = RequirementMistake{at_, std::move(message)};
  }
  static bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '.'; }
  std::string_view word() const {
    const auto end = std::find_if_not(rest().begin(), rest().end(), is_word);
    return rest().substr(0, static_cast<std::size_t>(end - rest().begin()));
  }
  bool take_word(std::string_view wanted) {
    skip_blanks();
    if (word() != wanted) return false;
    at_ += wanted.size();
    return true;
  }

  void alternatives(int depth) {
    do {
      do {
        term(depth);
      } while (!mistake_ && take_word("and"));
    } while (!mistake_ && take_word("or"));
  }

  void term(int depth) {
    skip_blanks();
    if (!rest().starts_with('(')) {
      comparison();
      return;
    }
    if (depth >= kDeepest) return fail("too many parentheses");
    ++at_;
    alternatives(depth + 1);
    skip_blanks();
    if (mistake_) return;
    if (!rest().starts_with(')')) return fail("`)` is missing");
    ++at_;
  }

  void comparison() {
    operand();
    if (mistake_) return;
    skip_blanks();
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](std::string_view one) { return rest().starts_with(one); });
    if (found != kOperators.end()) {
      at_ += found->size();
    } else if (take_word("not")) {
      if (!take_word("in")) return fail("`in` is missing after `not`");
    } else if (!take_word("in")) {
      return fail(rest().starts_with('=') ? "`=` compares nothing; did you mean `==`?"
                                          : "a comparison is missing, as in `== 'linux'`");
    }
    operand();
  }

  void operand() {
    skip_blanks();
    if (rest().starts_with('\'') || rest().starts_with('"')) {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      if (end == std::string_view::npos) return fail("a quote is not closed");
      at_ = end + 1;
      return;
    }
    const std::string_view name = word();
    if (name.empty()) {
      return fail(
          "a marker compares a variable and a quoted text, as in `sys_platform == 'linux'`");
    }
    if (std::find(kVariables.begin(), kVariables.end(), name) == kVariables.end()) {
      return fail(fmt::format("markers have no variable `{}`{}; a text stands in quotes", name,
                              suggestion(name, kVariables)));
    }
    at_ += name.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<RequirementMistake> mistake_;
};

}  // namespace

std::optional<RequirementMistake> marker_mistake(std::string_view marker) {
  return MarkerReader(marker).read();
}

}  // namespace mlenv
