#include "recipes/toml.hpp"

#include <algorithm>
#include <optional>

#include <toml++/toml.h>

#include "recipes/mistakes.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

TomlValue convert(const toml::node& node);

TomlValue convert_table(const toml::table& table) {
  TomlValue value;
  value.kind = TomlValue::Kind::table;
  for (const auto& [key, member] : table) value.members.emplace(key.str(), convert(member));
  return value;
}

TomlValue convert(const toml::node& node) {
  TomlValue value;
  if (const toml::table* table = node.as_table()) {
    value = convert_table(*table);
  } else if (const toml::array* array = node.as_array()) {
    value.kind = TomlValue::Kind::list;
    for (const toml::node& item : *array) value.items.push_back(convert(item));
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

}  // namespace

const TomlValue* TomlValue::find(const std::string& key) const {
  const auto found = members.find(key);
  return found == members.end() ? nullptr : &found->second;
}

Error TomlFile::mistake(int line, int column, std::string_view message) const {
  Error error = usage_error(code, "{}", shown_mistake(shown_path, text, line, column, message));
  if (!hint.empty()) error.hint(hint);
  return error;
}

TomlValue parse_toml(const TomlFile& file) {
  try {
    const toml::table table = toml::parse(std::string_view(file.text));
    TomlValue root = convert_table(table);
    root.line = 1;
    root.column = 1;
    return root;
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
    fail(value, fmt::format("unknown key {}{}", toml_text(key), suggestion(key, keys)));
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
