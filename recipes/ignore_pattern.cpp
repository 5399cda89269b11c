#include "recipes/ignore_pattern.hpp"

#include <algorithm>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr char32_t kNoText = 0x110000;  // beyond Unicode: a byte that is no UTF-8 stands for itself

using Character = std::pair<char32_t, std::size_t>;  // and its offset

std::vector<Character> characters(std::string_view text) {
  std::vector<Character> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const std::optional<char32_t> one = take_character(text, at);
    found.emplace_back(one ? *one : kNoText + static_cast<unsigned char>(text[start]), start);
  }
  return found;
}

bool has_name(std::string_view part) {
  return std::any_of(part.begin(), part.end(), is_alphanumeric);
}

bool part_matches(std::string_view pattern, std::string_view name) {
  IgnorePattern::Mistake mistake;
  return IgnorePattern{pattern, mistake}.matches(name);
}

}  // namespace

bool IgnorePattern::Token::takes(char32_t one) const {
  if (kind == Kind::character) return one == character;
  if (kind == Kind::everything || kind == Kind::folders) return true;
  if (one == U'/') return false;
  if (kind != Kind::set) return true;
  const bool listed = std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
    return one >= range.first && one <= range.second;
  });
  return listed != inverted;
}

IgnorePattern::IgnorePattern(std::string_view text, Mistake& mistake) : text_(text) {
  compile(mistake);
  plain_ = text_.find_first_of("*?[\\") == std::string::npos;
  if (mistake.message.empty()) return;
  text_.clear();
  tokens_.clear();
}

void IgnorePattern::compile(Mistake& mistake) {
  using TokenKind = Token::Kind;
  const std::vector<Character> text = characters(text_);
  const auto is = [&](std::size_t i, char32_t one) {
    return i < text.size() && text[i].first == one;
  };
  for (std::size_t i = 0; i < text.size() && mistake.message.empty(); ++i) {
    const auto [one, offset] = text[i];
    if (one == U'*' && is(i + 1, U'*')) {
      ++i;
      // `**x` at the start, with no other wildcard after it, is whatever ends in `x`.
      const bool ending = i == 1 && i + 1 < text.size() && !is(2, U'/') &&
                          text_.find_first_of("*?[]\\", 2) == std::string::npos;
      if (is(i + 1, U'/')) ++i;
      tokens_.push_back(
          {i + 1 == text.size() || ending ? TokenKind::everything : TokenKind::folders});
    } else if (one == U'*') {
      tokens_.push_back({TokenKind::run});
    } else if (one == U'?') {
      tokens_.push_back({TokenKind::any});
    } else if (one == U'[') {
      i = compile_set(text, i, mistake);
    } else if (one == U'\\' && i + 1 == text.size()) {
      mistake = {offset, "there is nothing after `\\` for it to take as it is"};
    } else {
      if (one == U'\\') ++i;
      tokens_.push_back({TokenKind::character, text[i].first});
    }
  }
}

std::size_t IgnorePattern::compile_set(const std::vector<Character>& text, std::size_t at,
                                       Mistake& mistake) {
  const std::size_t start = text[at++].second;
  const auto is = [&](char32_t one) { return at < text.size() && text[at].first == one; };
  Token set{Token::Kind::set};
  if (is(U'^')) {
    set.inverted = true;
    ++at;
  }
  const auto character = [&]() -> char32_t {
    if (is(U'-') || is(U']')) {
      mistake = {text[at].second, "in `[…]` a `-` or `]` that means itself is written with `\\`"};
      return 0;
    }
    if (is(U'\\')) ++at;
    if (at < text.size()) return text[at++].first;
    mistake = {start, "`[` has no `]`"};
    return 0;
  };
  while (mistake.message.empty()) {
    if (is(U']') && !set.ranges.empty()) {
      tokens_.push_back(std::move(set));
      return at;
    }
    const char32_t low = character();
    char32_t high = low;
    if (mistake.message.empty() && is(U'-')) {
      ++at;
      high = character();
    }
    if (mistake.message.empty() && high < low) mistake = {start, "a range in `[…]` runs backwards"};
    set.ranges.emplace_back(low, high);
  }
  return at;
}

/// The state before token `at`, and those that are reached from it without a character.
void IgnorePattern::arrive(std::vector<char>& states, std::size_t at) const {
  for (; states[at] == 0; ++at) {
    states[at] = 1;
    if (at == tokens_.size()) return;
    const Token::Kind kind = tokens_[at].kind;
    if (kind != Token::Kind::run && kind != Token::Kind::folders &&
        kind != Token::Kind::everything) {
      return;
    }
  }
}

bool IgnorePattern::matches(std::string_view path) const {
  if (tokens_.empty()) return false;
  if (plain_) return path == text_;
  std::vector<char> states(tokens_.size() + 1);
  std::vector<char> next(states.size());
  arrive(states, 0);
  for (const auto& [one, offset] : characters(path)) {
    std::fill(next.begin(), next.end(), 0);
    bool alive = false;
    // From behind: a state that only stays must not stop another from arriving there.
    for (std::size_t i = tokens_.size(); i-- > 0;) {
      if (states[i] == 0 || !tokens_[i].takes(one)) continue;
      alive = true;
      switch (tokens_[i].kind) {
        case Token::Kind::run:
        case Token::Kind::everything:
          arrive(next, i);
          break;
        case Token::Kind::folders:
          if (one == U'/') arrive(next, i + 1);
          next[i] = 1;  // alone: what follows begins after a `/`
          break;
        default:
          arrive(next, i + 1);
      }
    }
    if (!alive) return false;
    states.swap(next);
  }
  return states.back() != 0;
}

bool IgnorePattern::may_match_in(std::string_view folder) const {
  const std::vector<std::string_view> pattern = split(text_, '/');
  const std::vector<std::string_view> parts = split(folder, '/');
  for (std::size_t i = 0; i < std::min(pattern.size(), parts.size()); ++i) {
    // A set may hold a `/`, which then is none.
    if (pattern[i].find("**") != std::string_view::npos ||
        pattern[i].find_first_of("[\\") != std::string_view::npos) {
      return true;
    }
    if (!part_matches(pattern[i], parts[i])) return false;
  }
  return true;
}

bool IgnorePattern::names_something() const { return has_name(split(text_, '/').back()); }

bool IgnorePattern::mentions(std::string_view name) const {
  const std::vector<std::string_view> parts = split(text_, '/');
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return has_name(part) && part_matches(part, name);
  });
}

}  // namespace mlenv
