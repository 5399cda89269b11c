#include "recipes/python_values.hpp"

#include <algorithm>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Between a name and its key: in no name of Python's.
constexpr char kKey = '\x1f';

bool is_subscript(PythonTokens value) {
  return value.size() >= 4 && value[0].kind == PythonToken::Kind::name && is_sign(value[1], '[') &&
         value[2].kind == PythonToken::Kind::text && value[2].plain && is_sign(value[3], ']');
}

/// `requests` of `requests[socks]>=2`.
std::string_view name_of_requirement(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Of `{… re.findall(…, x) … for x in NAME}`, whose keys are the names in a list of requirements:
/// the list's name; empty: it is no such table.
PythonTokens list_of_table(PythonTokens value) {
  if (value.size() < 6 || !is_sign(value[0], '{') || bracket_length(value) != value.size()) {
    return {};
  }
  const auto says = [&](std::string_view word) {
    return std::any_of(value.begin(), value.end(), [&](const PythonToken& one) {
      return one.kind == PythonToken::Kind::name && one.text == word;
    });
  };
  const bool takes_apart = says("findall") || says("split") || says("match");
  if (!says("for") || !takes_apart || says("if")) return {};
  std::size_t last = value.size() - 1;
  while (last > 2 && depth_change(value[last]) < 0) --last;
  const bool named = value[last].kind == PythonToken::Kind::name && value[last - 1].text == "in";
  return named ? value.subspan(last, 1) : PythonTokens();
}

}  // namespace

PythonValues::PythonValues(PythonTokens tokens) : tokens_(tokens) {
  for (std::size_t i = 0; i + 1 < tokens_.size(); ++i) {
    if (tokens_[i].kind == PythonToken::Kind::name &&
        (i == 0 || tokens_[i - 1].kind == PythonToken::Kind::line_end)) {
      statement(i);
    }
  }
}

const PythonToken& PythonValues::at(std::size_t i) const {
  return tokens_[std::min(i, tokens_.size() - 1)];
}

PythonTokens PythonValues::expression(std::size_t begin) const {
  const PythonTokens rest = tokens_.subspan(std::min(begin, tokens_.size()));
  return rest.first(expression_length(rest));
}

/// `x` and `x["key"]` at the beginning of a statement.
PythonValues::Target PythonValues::target(std::size_t begin) const {
  const PythonTokens rest = tokens_.subspan(begin);
  if (!is_subscript(rest)) return {rest[0].text, begin + 1};
  return {slot_of(rest.first(4)), begin + 4};
}

std::string PythonValues::slot_of(PythonTokens name) const {
  if (name.size() == 1 && name[0].kind == PythonToken::Kind::name) return name[0].text;
  if (name.size() == 4 && is_subscript(name)) return name[0].text + kKey + name[2].text;
  return {};
}

/// `x = …`, and what changes `x`: `x += …`, `x.append(…)`.
void PythonValues::statement(std::size_t i) {
  const PythonToken& name = tokens_[i];
  if (name.text == "for") return loop(i);
  const Target to = target(i);
  const std::size_t next = to.end;
  if (const std::size_t value = value_assigned(next); value > 0) {
    assign(to, name, expression(value));
  } else if (is_sign(at(next), '+') && is_sign(at(next + 1), '=')) {
    added_[to.slot].push_back({expression(next + 2), name.margin, name.line});
  } else if (is_sign(at(next), '.') && is_sign(at(next + 2), '(') &&
             (at(next + 1).text == "append" || at(next + 1).text == "extend")) {
    added_[to.slot].push_back({expression(next + 3), name.margin, name.line});
  } else if (is_sign(at(next), '.') || is_sign(at(next + 1), '=')) {
    changed_.insert(to.slot);
  } else if (next == i + 1 && is_sign(at(next), '[') && is_sign(at(next + 2), ']') &&
             is_sign(at(next + 3), '=')) {
    changed_.insert(name.text);  // x[i] = …
  }
}

/// What a condition or a function assigns, or is assigned again, is computed.
void PythonValues::assign(const Target& to, const PythonToken& name, PythonTokens value) {
  mentioned_.emplace(to.slot, value);
  if (to.slot != name.text) {
    keys_[name.text].emplace(to.slot.substr(name.text.size() + 1), name.line);
  }
  if (!name.margin || !assigned_.emplace(to.slot, value).second) changed_.insert(to.slot);
}

/// `for a, b in x`.
void PythonValues::loop(std::size_t i) {
  std::size_t in = i + 1;
  while (at(in).kind != PythonToken::Kind::line_end && at(in).text != "in") ++in;
  if (at(in).text != "in") return;
  for (std::size_t j = i + 1; j < in; ++j) {
    if (at(j).kind == PythonToken::Kind::name)
      mentioned_.emplace(at(j).text, tokens_.subspan(in + 1, 1));
  }
}

/// Where the value begins, behind a name: `= …` and `: list[str] = …`; 0: it is neither.
std::size_t PythonValues::value_assigned(std::size_t i) const {
  if (is_sign(at(i), '=')) return is_sign(at(i + 1), '=') ? 0 : i + 1;
  if (!is_sign(at(i), ':')) return 0;
  int depth = 0;
  for (std::size_t j = i + 1; j < tokens_.size(); ++j) {
    depth += depth_change(tokens_[j]);
    if (tokens_[j].kind == PythonToken::Kind::line_end) return 0;
    if (depth == 0 && is_sign(tokens_[j], '=')) return j + 1;
  }
  return 0;
}

PythonTokens PythonValues::given(PythonTokens name) const {
  const std::string slot = slot_of(name);
  const auto found = assigned_.find(slot);
  return found == assigned_.end() || changed_.contains(slot) ? PythonTokens() : found->second;
}

PythonTokens PythonValues::mentioned(const std::string& name) const {
  const auto found = mentioned_.find(name);
  return found == mentioned_.end() ? PythonTokens() : found->second;
}

const std::vector<PythonValues::Addition>& PythonValues::additions(PythonTokens name) const {
  static const std::vector<Addition> none;
  const auto found = added_.find(slot_of(name));
  return found == added_.end() ? none : found->second;
}

const std::map<std::string, int>& PythonValues::keys(const std::string& name) const {
  static const std::map<std::string, int> none;
  const auto found = keys_.find(name);
  return found == keys_.end() ? none : found->second;
}

void PythonValues::note_conditional(const Addition& one) { note_texts(one.value, 0); }

/// Texts of an expression; of one without any, those of the names in it.
void PythonValues::note_texts(PythonTokens value, int depth) {
  constexpr int kDeepest = 4;
  if (depth > kDeepest) return;
  bool some = false;
  for (const PythonToken& token : value) {
    if (token.kind != PythonToken::Kind::text) continue;
    some = true;
    const std::pair<std::string, int> told{token.text, token.line};
    if (std::find(conditional_.begin(), conditional_.end(), told) == conditional_.end()) {
      conditional_.push_back(told);
    }
  }
  for (const PythonToken& token : value) {
    if (!some && token.kind == PythonToken::Kind::name && step())
      note_texts(mentioned(token.text), depth + 1);
  }
}

std::optional<PythonValues::Plain> PythonValues::plain(PythonTokens value, int depth) {
  constexpr int kDeepest = 20;
  if (value.empty() || depth > kDeepest || !step()) return std::nullopt;
  Plain all;
  for (std::size_t i = 0; i < value.size();) {
    if (i > 0 && !is_sign(value[i++], '+')) return std::nullopt;
    const Operand one = operand(value.subspan(i), depth);
    if (!one.value || !add(*one.value, all)) return std::nullopt;
    i += one.length;
  }
  return all;
}

PythonValues::Operand PythonValues::operand(PythonTokens value, int depth) {
  if (value.empty()) return {};
  const PythonToken& first = value.front();
  if (first.kind == PythonToken::Kind::text) return texts(value, depth);
  if (is_sign(first, '[') || is_sign(first, '(')) {
    const std::size_t length = bracket_length(value);
    if (length < 2) return {};
    return {items(value.subspan(1, length - 2), is_sign(first, '('), depth), length};
  }
  return first.kind == PythonToken::Kind::name ? named(value, depth) : Operand();
}

PythonValues::Operand PythonValues::named(PythonTokens value, int depth) {
  if (is_subscript(value)) return {looked_up(value[0].text, value[2].text, depth), 4};
  const PythonTokens known = given(value.first(1));
  if (known.empty()) return {};
  auto held = plain(known, depth + 1);
  if (held && !add_later(value[0].text, depth, *held)) held.reset();
  return {std::move(held)};
}

/// What `NAME["key"]` was given, or its map has for the key.
std::optional<PythonValues::Plain> PythonValues::looked_up(const std::string& name,
                                                           const std::string& key, int depth) {
  const std::string slot = name + kKey + key;
  if (changed_.contains(slot) || changed_.contains(name)) return std::nullopt;
  std::optional<Plain> held;
  if (const auto own = assigned_.find(slot); own != assigned_.end()) {
    held = plain(own->second, depth + 1);
  } else if (const auto table = assigned_.find(name); table != assigned_.end()) {
    held = of_table(table->second, key, depth + 1);
  }
  if (held && !add_later(slot, depth, *held)) held.reset();
  return held;
}

/// Of `{"key": value}`; of a table that is made of a list of requirements, the one of that name.
std::optional<PythonValues::Plain> PythonValues::of_table(PythonTokens table,
                                                          const std::string& key, int depth) {
  if (table.empty() || !is_sign(table[0], '{')) return std::nullopt;
  if (const PythonTokens list = list_of_table(table); !list.empty()) {
    const auto all = named(list, depth).value;
    if (!all || !all->list) return std::nullopt;
    const auto found = std::find_if(all->items.begin(), all->items.end(), [&](const auto& one) {
      return name_of_requirement(one) == key;
    });
    if (found == all->items.end()) return std::nullopt;
    return Plain{false, {*found}};
  }
  for (std::size_t i = 1; i < table.size() && step();) {
    const PythonTokens rest = table.subspan(i);
    const PythonTokens one = rest.first(expression_length(rest));
    if (one.size() > 2 && one[0].kind == PythonToken::Kind::text && one[0].text == key &&
        is_sign(one[1], ':')) {
      return plain(one.subspan(2), depth);
    }
    i += one.size() + 1;
  }
  return std::nullopt;
}

/// Neighbours are one text; `%` and `.format(…)` fill it.
PythonValues::Operand PythonValues::texts(PythonTokens value, int depth) {
  std::string one;
  std::size_t length = 0;
  for (; length < value.size() && value[length].kind == PythonToken::Kind::text; ++length) {
    const auto part = filled(value[length], depth);
    if (!part) return {};
    one += *part;
  }
  const PythonTokens rest = value.subspan(length);
  std::optional<std::string> text = std::move(one);
  if (rest.size() > 1 && is_sign(rest[0], '%')) {
    const bool several = is_sign(rest[1], '(');
    const std::size_t size = several ? bracket_length(rest.subspan(1)) : 1;
    if (size == 0) return {};
    text = filled_later(*text, "%s", rest.subspan(several ? 2 : 1, several ? size - 2 : 1), depth);
    length += 1 + size;
  } else if (rest.size() > 3 && is_sign(rest[0], '.') && rest[1].text == "format" &&
             is_sign(rest[2], '(')) {
    const std::size_t size = bracket_length(rest.subspan(2));
    if (size < 2) return {};
    text = filled_later(*text, "{}", rest.subspan(3, size - 2), depth);
    length += 2 + size;
  }
  if (!text) return {};
  return {Plain{false, {std::move(*text)}}, length};
}

/// An f-string whose fields are names with plain values.
std::optional<std::string> PythonValues::filled(const PythonToken& text, int depth) {
  if (text.plain) return text.text;
  std::string out;
  std::string_view rest = text.text;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if ((c == '{' || c == '}') && rest.starts_with(c)) {
      rest.remove_prefix(1);
      out += c;
    } else if (c == '{') {
      const std::size_t end = std::min(rest.find('}'), rest.size());
      const auto field = python_tokens(rest.substr(0, end));  // with a line's end
      const auto value = single(PythonTokens(field).first(field.size() - 1), depth + 1);
      if (!value || end == rest.size()) return std::nullopt;
      out += *value;
      rest.remove_prefix(end + 1);
    } else {
      out += c;
    }
  }
  return out;
}

/// `text` with a value for each `mark`.
std::optional<std::string> PythonValues::filled_later(std::string_view text, std::string_view mark,
                                                      PythonTokens values, int depth) {
  std::string out;
  for (std::size_t found = text.find(mark); found != std::string_view::npos;
       found = text.find(mark)) {
    const PythonTokens one = values.first(expression_length(values));
    const auto value = single(one, depth + 1);
    if (!value) return std::nullopt;
    out += text.substr(0, found);
    out += *value;
    text.remove_prefix(found + mark.size());
    values = values.subspan(std::min(values.size(), one.size() + 1));
  }
  out += text;
  // `%d`, `{0}`, `{name}`: not read here.
  if (out.find(mark.front()) != std::string::npos || !values.empty()) return std::nullopt;
  return out;
}

std::optional<std::string> PythonValues::single(PythonTokens value, int depth) {
  const auto found = plain(value, depth);
  if (!found || found->list || found->items.size() != 1) return std::nullopt;
  return found->items.front();
}

/// What statements add to a name: those at the margin always, others where a condition says so.
bool PythonValues::add_later(const std::string& slot, int depth, Plain& held) {
  const auto found = added_.find(slot);
  if (found == added_.end()) return true;
  held.list = true;
  for (const Addition& one : found->second) {
    if (!one.margin) {
      note_conditional(one);
      continue;
    }
    const auto more = plain(one.value, depth + 1);
    if (!more || !add(*more, held)) return false;
  }
  return true;
}

bool PythonValues::add(const Plain& one, Plain& all) {
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

std::optional<PythonValues::Plain> PythonValues::items(PythonTokens inner, bool round, int depth) {
  Plain all{true, {}};
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

}  // namespace mlenv
