#include "runner/matrix/placeholders.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::matrix {
namespace {

constexpr std::array<std::string_view, 2> kOwn = {"output", "number"};

/// What stands for `{name}`; nothing: it stays.
using Meaning = std::function<std::optional<std::string>(const std::string& name)>;

/// Length of a variable's name in braces at the beginning, with them; 0: there is none.
std::size_t braces_at(std::string_view text) {
  if (text.empty() || text.front() != '{') return 0;
  const std::size_t end = text.find('}');
  if (end == std::string_view::npos || !is_env_name(text.substr(1, end - 1))) return 0;
  return end + 1;
}

std::string filled_in(std::string_view text, const Meaning& meaning) {
  std::string out;
  while (!text.empty()) {
    const bool doubled = text.starts_with("{{");
    const std::string_view inner = doubled ? text.substr(1) : text;
    const std::size_t size = braces_at(inner);
    const bool closed = size > 0 && (!doubled || inner.substr(size).starts_with('}'));
    const auto value = closed ? meaning(std::string(inner.substr(1, size - 2))) : std::nullopt;
    if (value) {
      out += doubled ? std::string(inner.substr(0, size)) : *value;
      text = inner.substr(size + (doubled ? 1 : 0));
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

/// The parameter that `name` nearly is; empty: none.
std::string meant_by(std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t kMostEdits = 2;
  constexpr std::size_t kLongest = 64;
  std::string best;
  std::size_t best_distance = kMostEdits + 1;
  for (const std::string& one : names) {
    if (to_lower(one) == to_lower(name)) return one;
    if (std::max(one.size(), name.size()) > kLongest) continue;
    const std::size_t distance = edit_distance(name, one, kMostEdits);
    // Programs have short names in braces, which are near to anything short.
    if (distance >= best_distance || 2 * distance >= name.size()) continue;
    best = one;
    best_distance = distance;
  }
  return best;
}

bool is_one_of(std::string_view name, const std::vector<std::string>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool is_own_placeholder(std::string_view name) {
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end();
}

void check_placeholders(const std::vector<std::string>& argv,
                        const std::vector<std::string>& names) {
  for (const std::string& word : argv) {
    for (std::size_t at = 0; at < word.size(); ++at) {
      const std::size_t size = braces_at(std::string_view(word).substr(at));
      if (size == 0 || (at > 0 && word[at - 1] == '{')) continue;
      const std::string name = word.substr(at + 1, size - 2);
      if (is_one_of(name, names) || is_own_placeholder(name)) continue;
      const std::string near = meant_by(name, names);
      if (near.empty()) continue;
      throw usage_error("bad-matrix", "`{{{}}}` in the command is no parameter of the matrix; {}",
                        name, did_you_mean("{" + near + "}"))
          .hint(fmt::format("write `{{{{{}}}}}` for the word in braces as it stands", name));
    }
  }
}

std::vector<std::string> with_values(const std::vector<std::string>& argv,
                                     const std::vector<Value>& values, std::size_t number) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  const Meaning meaning = [&](const std::string& name) -> std::optional<std::string> {
    for (const Value& value : values) {
      if (value.name == name) return value.text;
    }
    if (name == "output") return std::string(kOutputTarget);
    if (name == "number") return std::to_string(number);
    // One that is nearly a parameter's is only there in double braces (check_placeholders).
    return meant_by(name, names).empty() ? std::nullopt : std::optional(name);
  };
  std::vector<std::string> out;
  for (const std::string& word : argv) out.push_back(filled_in(word, meaning));
  return out;
}

}  // namespace mlenv::matrix
