#include "recipes/setup_py.hpp"

#include <algorithm>
#include <set>

#include "recipes/python_listings.hpp"
#include "recipes/python_tokens.hpp"
#include "recipes/python_values.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using TokenKind = PythonToken::Kind;

class SetupReader {
 public:
  explicit SetupReader(std::string_view text) : tokens_(python_tokens(text)), values_(tokens_) {}

  SetupFacts read() {
    for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind == TokenKind::name && tokens_[i].text == "setup" &&
          is_sign(tokens_[i + 1], '(') && (i == 0 || tokens_[i - 1].text != "def")) {
        facts_.calls_setup = true;
        arguments(i + 2);
      }
    }
    facts_.conditional = values_.conditional();
    listings();
    return std::move(facts_);
  }

 private:
  const PythonToken& at(std::size_t i) const { return tokens_[std::min(i, tokens_.size() - 1)]; }

  void arguments(std::size_t begin) {
    for (std::size_t i = begin; i < tokens_.size();) {
      const PythonTokens one = values_.expression(i);
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
    if (value.size() == 1) value = instead_of(value);
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

  /// What a name was given first; without that, itself.
  PythonTokens instead_of(PythonTokens name) const {
    const PythonTokens value = values_.mentioned(name[0].text);
    return value.empty() ? name : value;
  }

  void argument(const PythonToken& key, PythonTokens value) {
    if (key.text == "name") facts_.name = single(value);
    if (key.text == "python_requires") facts_.python = single(value);
    if (key.text == "extras_require") {
      extras_value_ = value;
      extras(value);
    }
    if (key.text == "ext_modules") {
      for (const PythonToken& token : value) facts_.ext_modules.push_back(token.text);
    }
    if (key.text == "install_requires") install_requires(key, value);
    if (key.text == "requires" && !facts_.requires_) {
      facts_.line = key.line;
      if (auto items = values_.plain(value)) {
        facts_.requires_ = SetupFacts::Texts{std::move(items->items), key.line};
      }
    }
  }

  /// What is plain of `a + b`, and where the rest comes from.
  void install_requires(const PythonToken& key, PythonTokens value) {
    facts_.line = key.line;
    install_value_ = value;
    facts_.requires_.reset();
    if (value.empty()) facts_.computed = true;
    requirements_of(value, key.line, 0);
  }

  void requirements_of(PythonTokens value, int line, int depth) {
    constexpr int kDeepest = 4;
    for (const PythonTokens part : summands(value)) {
      const PythonTokens known = depth < kDeepest ? values_.given(part) : PythonTokens();
      if (auto items = values_.plain(part)) {
        require(items->items, line);
      } else if (summands(known).size() > 1) {
        requirements_of(known, line, depth + 1);
        additions_to(part);
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
    const auto found = values_.plain(value);
    if (!found || found->list || found->items.size() != 1) return std::nullopt;
    return found->items.front();
  }

  void extras(PythonTokens value) {
    if (value.size() == 1) {
      const auto& more = values_.keys(value[0].text);
      facts_.extras.insert(more.begin(), more.end());
      value = instead_of(value);
    }
    int depth = 0;
    for (std::size_t i = 0; i + 1 < value.size(); ++i) {
      depth += depth_change(value[i]);
      if (depth == 1 && value[i].kind == TokenKind::text && is_sign(value[i + 1], ':')) {
        facts_.extras.emplace(value[i].text, value[i].line);
      }
    }
  }

  /// Of `open("requirements.txt")`, wherever on the way to the value it stands.
  void named_files(PythonTokens value, int depth) {
    if (depth > 4) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      const PythonToken& token = value[i];
      if (!values_.step()) return;
      if (token.kind == TokenKind::text) add_file(token.text);
      if (token.kind != TokenKind::name) continue;
      named_files(values_.mentioned(token.text), depth + 1);
      additions_to(value.subspan(i, 1));
      named_in_function(token.text, depth);
    }
  }

  /// To a name whose value itself is computed.
  void additions_to(PythonTokens name) {
    const auto& all = values_.additions(name);
    if (all.empty() || !heeded_.insert(name[0].text).second) return;
    for (const PythonValues::Addition& one : all) {
      const auto items = one.margin ? values_.plain(one.value) : std::nullopt;
      if (items) {
        require(items->items, one.line);
      } else if (!one.margin) {
        values_.note_conditional(one);
      } else {
        named_files(one.value, 1);
      }
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
    if (!name.ends_with(".txt") || says(name, "*") ||
        std::find(all.begin(), all.end(), name) != all.end())
      return;
    all.push_back(name);
  }

  /// Files that are read without being named, as far as the code says for what.
  void listings() {
    for (const PythonListing& one : python_listings(tokens_, values_)) {
      if (gets(one, "install_requires", install_value_)) {
        facts_.listed.push_back({one.pattern, key_in(install_value_, one, 0), one.first_line});
      }
      if (gets(one, "extras_require", extras_value_)) {
        facts_.listed_extras.push_back({one.pattern, {}, one.first_line});
      }
      std::erase_if(facts_.conditional, [&](const auto& told) {
        return told.second >= one.first_line && told.second <= one.last_line;
      });
    }
  }

  /// Whether what a listing reads comes to the argument of that name.
  bool gets(const PythonListing& listing, const std::string& argument, PythonTokens value) {
    if (listing.fed.contains(argument)) return true;
    std::set<std::string> names;
    add_names(value, names, 0);
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& one) { return listing.fed.contains(one); });
  }

  void add_names(PythonTokens value, std::set<std::string>& names, int depth) {
    constexpr int kDeepest = 4;
    for (const PythonToken& token : value) {
      if (token.kind != TokenKind::name || !values_.step()) continue;
      if (!names.insert(token.text).second || depth == kDeepest) continue;
      add_names(values_.mentioned(token.text), names, depth + 1);
    }
  }

  /// `base` of `extras["base"]`, `extras.pop("base")` and `read("base")`.
  std::string key_in(PythonTokens value, const PythonListing& listing, int depth) {
    constexpr int kDeepest = 4;
    for (std::size_t i = 0; i < value.size() && values_.step(); ++i) {
      if (value[i].kind == TokenKind::text && i > 1) {
        const std::string& before = value[i - 2].text;
        const bool call = before == "pop" || before == "get" || listing.fed.contains(before);
        if (is_sign(value[i - 1], '[') || (call && is_sign(value[i - 1], '('))) {
          return value[i].text;
        }
      }
      if (value[i].kind != TokenKind::name || depth == kDeepest) continue;
      std::string found = key_in(values_.mentioned(value[i].text), listing, depth + 1);
      if (!found.empty()) return found;
    }
    return {};
  }

  static constexpr std::size_t kMostSearched = 200;
  std::vector<PythonToken> tokens_;
  PythonValues values_;
  std::set<std::string> heeded_;
  PythonTokens install_value_;      ///< of `install_requires`
  PythonTokens extras_value_;       ///< of `extras_require`
  std::set<std::string> searched_;  ///< for files that they are read from
  SetupFacts facts_;
};

}  // namespace

SetupFacts read_setup_py(std::string_view text) { return SetupReader(text).read(); }

}  // namespace mlenv
