#include "recipes/setup_py.hpp"

#include <algorithm>
#include <set>

#include "recipes/python_tokens.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using TokenKind = PythonToken::Kind;

/// A plain value: one text, or a list of texts.
struct PlainValue {
  bool list = false;
  std::vector<std::string> items;
};

class SetupReader {
 public:
  explicit SetupReader(std::string_view text) : tokens_(python_tokens(text)) {}

  SetupFacts read() {
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind != TokenKind::name) continue;
      if (i == 0 || tokens_[i - 1].kind == TokenKind::line_end) {
        statement(i);
      }
      if (tokens_[i].text == "setup" && is_sign(tokens_[i + 1], '(') &&
          (i == 0 || tokens_[i - 1].text != "def")) {
        facts_.calls_setup = true;
        arguments(i + 2);
      }
    }
    return std::move(facts_);
  }

 private:
  /// What a statement puts into a name.
  struct Addition {
    PythonTokens value;
    bool margin = false;
    int line = 0;
  };

  const PythonToken& at(std::size_t i) const { return tokens_[std::min(i, tokens_.size() - 1)]; }
  PythonTokens expression(std::size_t begin) const {
    const PythonTokens rest = PythonTokens(tokens_).subspan(std::min(begin, tokens_.size()));
    return rest.first(expression_length(rest));
  }

  /// `x = …`, and what changes `x`: `x += …`, `x.append(…)`.
  void statement(std::size_t i) {
    const PythonToken& name = tokens_[i];
    const bool plus = is_sign(at(i + 1), '+') && is_sign(at(i + 2), '=');
    if (is_sign(at(i + 1), '[') && at(i + 2).kind == TokenKind::text && is_sign(at(i + 3), ']') &&
        is_sign(at(i + 4), '=')) {
      keys_[name.text].emplace(at(i + 2).text, at(i + 2).line);
      return;
    }
    if (const std::size_t value = value_assigned(i); value > 0) {
      // What a condition or a function assigns, or is assigned again, is computed.
      if (!name.margin || !assigned_.emplace(name.text, expression(value)).second) {
        changed_.insert(name.text);
      }
    } else if (plus) {
      added_[name.text].push_back({expression(i + 3), name.margin, name.line});
    } else if (is_sign(at(i + 1), '.') && is_sign(at(i + 3), '(') &&
               (at(i + 2).text == "append" || at(i + 2).text == "extend")) {
      added_[name.text].push_back({expression(i + 4), name.margin, name.line});
    } else if (is_sign(at(i + 1), '.') || is_sign(at(i + 2), '=')) {
      changed_.insert(name.text);
    }
  }

  /// Where the value begins in `x = …` and `x: list[str] = …`; 0: it is neither.
  std::size_t value_assigned(std::size_t i) const {
    if (is_sign(at(i + 1), '=')) return is_sign(at(i + 2), '=') ? 0 : i + 2;
    if (!is_sign(at(i + 1), ':')) return 0;
    int depth = 0;
    for (std::size_t j = i + 2; j < tokens_.size(); ++j) {
      depth += depth_change(tokens_[j]);
      if (tokens_[j].kind == TokenKind::line_end) return 0;
      if (depth == 0 && is_sign(tokens_[j], '=')) return j + 1;
    }
    return 0;
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
    if (key.text == "install_requires") install_requires(key, value);
    if (key.text == "requires" && !facts_.requires_) {
      facts_.line = key.line;
      if (auto items = plain(value, 0)) {
        facts_.requires_ = SetupFacts::Texts{std::move(items->items), key.line};
      }
    }
  }

  /// What is plain of `a + b`, and where the rest comes from.
  void install_requires(const PythonToken& key, PythonTokens value) {
    facts_.line = key.line;
    facts_.requires_.reset();
    if (value.empty()) facts_.computed = true;
    requirements_of(value, key.line, 0);
  }

  void requirements_of(PythonTokens value, int line, int depth) {
    constexpr int kDeepest = 4;
    for (const PythonTokens part : summands(value)) {
      const auto known = part.size() == 1 && depth < kDeepest && !changed_.contains(part[0].text)
                             ? assigned_.find(part[0].text)
                             : assigned_.end();
      if (auto items = plain(part, 0)) {
        require(items->items, line);
      } else if (known != assigned_.end() && summands(known->second).size() > 1) {
        requirements_of(known->second, line, depth + 1);
        additions_to(part[0].text);
      } else {
        facts_.computed = true;
        named_files(part, 0);
      }
    }
  }

  void require(const std::vector<std::string>& items, int line) {
    if (!facts_.requires_) facts_.requires_ = SetupFacts::Texts{{}, line};
    std::vector<std::string>& all = facts_.requires_->items;
    all.insert(all.end(), items.begin(), items.end());
  }

  static std::vector<PythonTokens> summands(PythonTokens value) {
    std::vector<PythonTokens> all;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      depth += depth_change(value[i]);
      if (depth > 0 || !is_sign(value[i], '+')) continue;
      all.push_back(value.subspan(begin, i - begin));
      begin = i + 1;
    }
    if (begin < value.size()) all.push_back(value.subspan(begin));
    return all;
  }

  std::optional<std::string> single(PythonTokens value) {
    const auto found = plain(value, 0);
    if (!found || found->list || found->items.size() != 1) return std::nullopt;
    return found->items.front();
  }

  void extras(PythonTokens value) {
    if (value.size() == 1) {
      if (const auto more = keys_.find(value[0].text); more != keys_.end()) {
        facts_.extras.insert(more->second.begin(), more->second.end());
      }
      if (assigned_.contains(value[0].text)) value = assigned_[value[0].text];
    }
    int depth = 0;
    for (std::size_t i = 0; i + 1 < value.size(); ++i) {
      depth += depth_change(value[i]);
      if (depth == 1 && value[i].kind == TokenKind::text && is_sign(value[i + 1], ':')) {
        facts_.extras.emplace(value[i].text, value[i].line);
      }
    }
  }

  /// nullopt: computed in another way.
  std::optional<PlainValue> plain(PythonTokens value, int depth) {
    constexpr int kDeepest = 20;
    if (value.empty() || depth > kDeepest || --steps_ < 0) return std::nullopt;
    PlainValue all;
    for (std::size_t i = 0; i < value.size();) {
      if (i > 0 && !is_sign(value[i++], '+')) return std::nullopt;
      const Operand one = operand(value.subspan(i), depth);
      if (!one.value || !add(*one.value, all)) return std::nullopt;
      i += one.length;
    }
    return all;
  }

  struct Operand {
    std::optional<PlainValue> value;
    std::size_t length = 1;
  };

  Operand operand(PythonTokens value, int depth) {
    if (value.empty()) return {};
    const PythonToken& first = value.front();
    if (first.kind == TokenKind::text) return texts(value);
    if (is_sign(first, '[') || is_sign(first, '(')) {
      const std::size_t length = bracket_length(value);
      if (length < 2) return {};
      return {items(value.subspan(1, length - 2), is_sign(first, '('), depth), length};
    }
    if (first.kind != TokenKind::name || changed_.contains(first.text)) return {};
    const auto known = assigned_.find(first.text);
    if (known == assigned_.end()) return {};
    auto held = plain(known->second, depth + 1);
    if (held && !add_later(first.text, depth, *held)) held.reset();
    return {std::move(held)};
  }

  /// Neighbours are one text.
  static Operand texts(PythonTokens value) {
    PlainValue one{false, {std::string{}}};
    std::size_t length = 0;
    for (; length < value.size() && value[length].kind == TokenKind::text; ++length) {
      if (!value[length].plain) return {};
      one.items.front() += value[length].text;
    }
    return {std::move(one), length};
  }

  /// What statements add to a name: those at the margin always, others where a condition says so.
  bool add_later(const std::string& name, int depth, PlainValue& held) {
    const auto found = added_.find(name);
    if (found == added_.end()) return true;
    held.list = true;
    for (const Addition& one : found->second) {
      if (!one.margin) {
        tell_conditional(one);
        continue;
      }
      const auto more = plain(one.value, depth + 1);
      if (!more || !add(*more, held)) return false;
    }
    return true;
  }

  bool add(const PlainValue& one, PlainValue& all) {
    constexpr std::size_t kMost = 10'000;
    for (const std::string& item : one.items) {
      if (item.size() >= bytes_) return false;
      bytes_ -= item.size();
    }
    if (all.items.empty() || all.list || one.list) {
      all.list = all.list || one.list;
      all.items.insert(all.items.end(), one.items.begin(), one.items.end());
    } else {
      all.items.back() += one.items.front();
    }
    return all.items.size() <= kMost;
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
      if (token.kind == TokenKind::text) add_file(token.text);
      if (token.kind != TokenKind::name) continue;
      if (const auto found = assigned_.find(token.text); found != assigned_.end()) {
        named_files(found->second, depth + 1);
      }
      additions_to(token.text);
      named_in_function(token.text, depth);
    }
  }

  /// To a name whose value itself is computed.
  void additions_to(const std::string& name) {
    const auto found = added_.find(name);
    if (found == added_.end() || !heeded_.insert(name).second) return;
    for (const Addition& one : found->second) {
      const auto items = one.margin ? plain(one.value, 0) : std::nullopt;
      if (items) {
        require(items->items, one.line);
      } else if (!one.margin) {
        tell_conditional(one);
      } else {
        named_files(one.value, 1);
      }
    }
  }

  void tell_conditional(const Addition& one) {
    for (const PythonToken& token : one.value) {
      if (token.kind != TokenKind::text) continue;
      const std::pair<std::string, int> told{token.text, token.line};
      auto& all = facts_.conditional;
      if (std::find(all.begin(), all.end(), told) == all.end()) all.push_back(told);
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
      requirement_files(begin, i + (defined ? 80U : 20U), defined ? i + 1 : tokens_.size());
      if (depth > 4) return;
    }
  }

  /// Between tokens, up to the next function behind `last`.
  void requirement_files(std::size_t begin, std::size_t end, std::size_t last) {
    for (std::size_t i = begin; i < std::min(tokens_.size(), end); ++i) {
      if (i > last && (tokens_[i].text == "def" || tokens_[i].margin)) return;
      if (tokens_[i].kind == TokenKind::text && says(tokens_[i].text, "requirement")) {
        add_file(tokens_[i].text);
      }
    }
  }

  void add_file(const std::string& name) {
    std::vector<std::string>& all = facts_.files;
    if (!name.ends_with(".txt") || std::find(all.begin(), all.end(), name) != all.end()) return;
    all.push_back(name);
  }

  static constexpr std::size_t kMostSearched = 200;
  std::vector<PythonToken> tokens_;
  std::map<std::string, PythonTokens> assigned_;
  std::map<std::string, std::vector<Addition>> added_;
  std::map<std::string, std::map<std::string, int>> keys_;  ///< of `x["a"] = …`, and where
  std::set<std::string> heeded_;
  std::set<std::string> changed_;              ///< by more than one plain assignment at the margin
  std::set<std::string> searched_;             ///< for files that they are read from
  int steps_ = 20'000;                         ///< that a file may cost: it may be anybody's
  std::size_t bytes_ = std::size_t{4} << 20U;  ///< of texts that it may come to
  SetupFacts facts_;
};

}  // namespace

SetupFacts read_setup_py(std::string_view text) { return SetupReader(text).read(); }

}  // namespace mlenv
