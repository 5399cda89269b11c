#include "recipes/toml.hpp"

#include <algorithm>
#include <optional>

#include <toml++/toml.h>

#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kDeepestToml = 64;
constexpr int kMostKeyParts = 32;
constexpr std::string_view kTooDeep = "this is nested too deeply";

struct TooDeep {
  toml::source_position at;
};

TomlValue to_value(const toml::node& node, int depth);

TomlValue convert_table(const toml::table& table, int depth) {
  TomlValue value;
  value.kind = TomlValue::Kind::table;
  for (const auto& [key, member] : table) {
    value.members.emplace(key.str(), to_value(member, depth + 1));
  }
  return value;
}

TomlValue to_value(const toml::node& node, int depth) {
  if (depth > kDeepestToml) throw TooDeep{node.source().begin};
  TomlValue value;
  if (const toml::table* table = node.as_table()) {
    value = convert_table(*table, depth);
  } else if (const toml::array* array = node.as_array()) {
    value.kind = TomlValue::Kind::list;
    for (const toml::node& item : *array) value.items.push_back(to_value(item, depth + 1));
  } else if (const auto* text = node.as_string()) {
    value.kind = TomlValue::Kind::text;
    value.text = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlValue::Kind::integer;
    value.integer = integer->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = TomlValue::Kind::boolean;
    value.boolean = boolean->get();
  }
  value.line = static_cast<int>(node.source().begin.line);
  value.column = static_cast<int>(node.source().begin.column);
  return value;
}

std::string_view kind_name(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::text:
      return "a text";
    case TomlValue::Kind::integer:
      return "a whole number";
    case TomlValue::Kind::boolean:
      return "`true` or `false`";
    case TomlValue::Kind::list:
      return "a list";
    case TomlValue::Kind::table:
      return "a table";
    case TomlValue::Kind::other:
      break;
  }
  return "another kind of value";
}

/// What toml++'s words mean to somebody who does not know its parser.
std::string translate(std::string_view said) {
  const auto says = [&](std::string_view words) {
    return said.find(words) != std::string_view::npos;
  };
  if (says("cannot redefine existing")) {
    const std::size_t open = said.find('\'');
    const std::size_t end = open == std::string_view::npos ? open : said.find('\'', open + 1);
    if (end == std::string_view::npos) return "this key is given twice";
    return fmt::format("`{}` is given twice", said.substr(open + 1, end - open - 1));
  }
  if (says("utf-8") || says("UTF-8")) return "the file is not UTF-8 text";
  if (says("end-of-file") || says("saw EOF")) return "the file ends in the middle of a value";
  if (says("control characters")) return "a text has no closing quote, or holds control characters";
  if (says("parsing string")) return "a text is malformed";
  if (says("expected comma or closing")) return "a `,` or the closing bracket is missing";
  if (says("closing ']'") || says("expected ']'")) return "a `]` is missing";
  return "this is no line of a TOML file: `key = value`, `[table]` or an item of a list";
}

/// Where a quoted text that begins at `open` ends on its line. Three quotes are passed over:
/// what they begin or end is on other lines, too.
std::size_t end_of_quoted(std::string_view line, std::size_t open) {
  const char quote = line[open];
  if (line.substr(open, 3) == std::string(3, quote)) return open + 2;
  for (std::size_t at = open + 1; at < line.size(); ++at) {
    if (quote == '"' && line[at] == '\\') {
      ++at;
    } else if (line[at] == quote) {
      return at;
    }
  }
  return line.size();
}

/// Whether words joined by dots follow one another in such a number.
bool has_long_key(std::string_view line) {
  int parts = 0;
  bool word_ended = false;
  char before = '.';
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == ' ' || c == '\t') {
      word_ended = before != '.';
      continue;
    }
    if (c == '.') {
      parts = before == '.' ? 0 : parts + 1;
      if (parts >= kMostKeyParts) return true;
    } else if (c == '"' || c == '\'') {
      at = end_of_quoted(line, at);
    } else {
      const bool in_word = is_letter(c) || is_digit(c) || c == '-' || c == '_';
      const bool second_word = word_ended && before != '.';
      if (!in_word || second_word) parts = 0;
    }
    word_ended = false;
    before = c;
  }
  return false;
}

/// 1-based; 0 where there is none.
int line_of_long_key(std::string_view text) {
  int line = 0;
  while (!text.empty()) {
    ++line;
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (has_long_key(text.substr(0, end))) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

/// A key in a message.
std::string shown_key(const std::string& key) {
  constexpr std::size_t kLongest = 80;
  return key.size() <= kLongest ? toml_text(key) : toml_text(key.substr(0, kLongest)) + "…";
}

}  // namespace

const TomlValue* TomlValue::find(const std::string& key) const {
  const auto found = members.find(key);
  return found == members.end() ? nullptr : &found->second;
}

const TomlValue* TomlValue::table(const std::string& key) const {
  const TomlValue* found = find(key);
  return found != nullptr && found->kind == Kind::table ? found : nullptr;
}

std::string TomlValue::text_of(const std::string& key) const {
  const TomlValue* found = find(key);
  return found != nullptr && found->kind == Kind::text ? found->text : std::string();
}

std::vector<std::string> TomlValue::texts_of(const std::string& key) const {
  std::vector<std::string> texts;
  const TomlValue* list = find(key);
  if (list == nullptr) return texts;
  for (const TomlValue& one : list->items) {
    if (one.kind == Kind::text) texts.push_back(one.text);
  }
  return texts;
}

bool TomlValue::is_set(const std::string& key) const {
  const TomlValue* found = find(key);
  return found != nullptr && found->kind == Kind::boolean && found->boolean;
}

Error TomlFile::mistake(int line, int column, std::string_view message) const {
  Error error = usage_error(code, "{}", shown_mistake(shown_path, text, line, column, message));
  if (!hint.empty()) error.hint(hint);
  return error;
}

TomlValue parse_toml(const TomlFile& file) {
  try {
    // toml++ bounds brackets, and not keys: each part is a table in a table.
    if (const int line = line_of_long_key(file.text); line > 0) {
      throw file.mistake(line, 1, kTooDeep);
    }
    const toml::table table = toml::parse(std::string_view(file.text));
    TomlValue root = convert_table(table, 0);
    root.line = 1;
    root.column = 1;
    return root;
  } catch (const TooDeep& found) {
    throw file.mistake(static_cast<int>(found.at.line), static_cast<int>(found.at.column),
                       kTooDeep);
  } catch (const toml::parse_error& error) {
    if (const std::optional<MergeMarker> marker = merge_marker(file.text)) {
      throw file.mistake(marker->line, 1,
                         fmt::format("git left its conflict marker `{}` here", marker->text));
    }
    const toml::source_position at = error.source().begin;
    throw file.mistake(static_cast<int>(at.line), static_cast<int>(at.column),
                       translate(error.description()));
  }
}

std::string toml_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || byte == 0x7F) {
      quoted += fmt::format("\\u{:04X}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string toml_list(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  quoted.reserve(texts.size());
  for (const std::string& text : texts) quoted.push_back(toml_text(text));
  return '[' + join(quoted, ", ") + ']';
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return c == '-' || c == '_' || is_digit(c) || is_letter(c);
  });
  return bare ? std::string(key) : toml_text(key);
}

void TomlReader::fail(const TomlValue& at, std::string_view message) const {
  throw file_.mistake(std::max(at.line, 1), std::max(at.column, 1), message);
}

void TomlReader::only(const TomlValue& table, std::span<const std::string_view> keys) const {
  if (tolerant_) return;
  for (const auto& [key, value] : table.members) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    fail(value, fmt::format("unknown key {}{}", shown_key(key), suggestion(key, keys)));
  }
}

const TomlValue* TomlReader::optional_member(const TomlValue& table, const std::string& key,
                                             TomlValue::Kind kind) const {
  const TomlValue* value = table.find(key);
  if (value != nullptr && value->kind != kind) {
    fail(*value, fmt::format("`{}` is not {}", key, kind_name(kind)));
  }
  return value;
}

const TomlValue& TomlReader::member(const TomlValue& table, const std::string& key,
                                    TomlValue::Kind kind) const {
  const TomlValue* value = optional_member(table, key, kind);
  if (value == nullptr) fail(table, fmt::format("`{}` is missing", key));
  return *value;
}

const std::string& TomlReader::text(const TomlValue& table, const std::string& key) const {
  const TomlValue& value = member(table, key, TomlValue::Kind::text);
  if (has_control(value.text)) fail(value, fmt::format("`{}` holds control characters", key));
  if (value.text.size() > 4096) fail(value, fmt::format("`{}` is too long", key));
  return value.text;
}

std::string TomlReader::optional_text(const TomlValue& table, const std::string& key) const {
  return table.find(key) == nullptr ? std::string{} : text(table, key);
}

std::uint64_t TomlReader::size(const TomlValue& table, const std::string& key) const {
  const TomlValue& value = member(table, key, TomlValue::Kind::integer);
  if (value.integer < 0) fail(value, fmt::format("`{}` is negative", key));
  return static_cast<std::uint64_t>(value.integer);
}

std::vector<std::string> TomlReader::texts(const TomlValue& table, const std::string& key) const {
  std::vector<std::string> found;
  const TomlValue* list = optional_member(table, key, TomlValue::Kind::list);
  if (list == nullptr) return found;
  for (const TomlValue& item : list->items) {
    if (item.kind != TomlValue::Kind::text) {
      fail(item, fmt::format("an item of `{}` is not a text", key));
    }
    if (has_control(item.text, "\t\n")) {
      fail(item, fmt::format("an item of `{}` holds control characters", key));
    }
    found.push_back(item.text);
  }
  return found;
}

bool TomlReader::optional_flag(const TomlValue& table, const std::string& key,
                               bool otherwise) const {
  const TomlValue* value = optional_member(table, key, TomlValue::Kind::boolean);
  return value == nullptr ? otherwise : value->boolean;
}

}  // namespace mlenv
