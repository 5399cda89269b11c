#include "recipes/version_syntax.hpp"

#include <algorithm>
#include <initializer_list>

#include <fmt/core.h>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

class VersionText {
 public:
  explicit VersionText(std::string_view text) : text_(text) {}

  bool read() {
    take({"v"});
    return release() && early() && late() && development() && local() && rest_.empty();
  }

 private:
  bool take(std::initializer_list<std::string_view> words) {
    for (const std::string_view word : words) {
      const bool same = rest_.size() >= word.size() &&
                        std::equal(word.begin(), word.end(), rest_.begin(),
                                   [](char a, char b) { return a == to_lower(b); });
      if (!same) continue;
      rest_.remove_prefix(word.size());
      return true;
    }
    return false;
  }

  bool number() {
    std::size_t length = 0;
    while (length < rest_.size() && is_digit(rest_[length])) ++length;
    rest_.remove_prefix(length);
    return length > 0;
  }

  bool release() {
    if (!number()) return false;
    if (take({"!"}) && !number()) return false;
    while (rest_.size() > 1 && rest_[0] == '.' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      number();
    }
    return true;
  }

  /// `rc1`, `.rc-1`, `rc`: nothing at all is none, and no mistake.
  bool suffix(std::initializer_list<std::string_view> words) {
    const std::string_view before = rest_;
    take({"-", "_", "."});
    if (!take(words)) {
      rest_ = before;
      return true;
    }
    const std::string_view bare = rest_;
    take({"-", "_", "."});
    if (!number()) rest_ = bare;
    return true;
  }

  bool early() { return suffix({"alpha", "a", "beta", "b", "preview", "pre", "c", "rc"}); }
  bool late() {
    if (rest_.size() > 1 && rest_[0] == '-' && is_digit(rest_[1])) {
      rest_.remove_prefix(1);
      return number();
    }
    return suffix({"post", "rev", "r"});
  }
  bool development() { return suffix({"dev"}); }

  bool local() {
    if (!take({"+"})) return true;
    do {
      std::size_t length = 0;
      while (length < rest_.size() && is_alphanumeric(rest_[length])) ++length;
      if (length == 0) return false;
      rest_.remove_prefix(length);
    } while (take({"-", "_", "."}));
    return true;
  }

  static char to_lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }

  std::string_view text_;
  std::string_view rest_ = text_;
};

}  // namespace

bool is_version(std::string_view text) { return VersionText(text).read(); }

std::string version_mistake(std::string_view sign, std::string_view version) {
  if (sign == "===") return {};
  std::string_view bare = version;
  if (version.ends_with(".*")) {
    if (sign != "==" && sign != "!=") return fmt::format("`.*` goes with `==` and `!=` alone");
    bare.remove_suffix(2);
  }
  if (!is_version(bare)) {
    return fmt::format("`{}` is not a version of a Python package (PEP 440)", version);
  }
  if (sign == "~=" && bare.find('.') == std::string_view::npos) {
    return fmt::format("`~=` wants two numbers at least, as in `~={}.0`", bare);
  }
  return {};
}

}  // namespace mlenv
