#pragma once
// Records (structs that list their members once, in `fields`) as JSON, written and read. For .cpp
// files alone: it brings the JSON library's own header.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/fact.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"

namespace mlenv {

/// What a text is said to hold.
struct RecordKind {
  std::string_view schema;  ///< `mlenv.facts/1`
  std::string_view noun;    ///< `facts of a host`
  std::string_view hint;    ///< how one gets such a text
};

template <class T>
concept Record = requires(T& value) { T::fields(value, [](const char*, auto&) {}); };

/// JSON of records, facts, lists and plain values. In a class, so that each form sees all others.
struct RecordWriter {
  template <class T>
  static nlohmann::json written(const std::optional<T>& value) {
    return value ? written(*value) : nlohmann::json(nullptr);
  }
  template <class T>
  static nlohmann::json written(const std::vector<T>& values) {
    nlohmann::json items = nlohmann::json::array();
    for (const T& value : values) items.push_back(written(value));
    return items;
  }
  template <class T>
  static nlohmann::json written(const Fact<T>& fact) {
    return {{"value", written(fact.value)}, {"source", fact.source}};
  }
  template <class T>
  static nlohmann::json written(const T& value) {
    if constexpr (Record<const T>) {
      nlohmann::json record = nlohmann::json::object();
      T::fields(value, [&](const char* name, const auto& field) { record[name] = written(field); });
      return record;
    } else {
      return value;
    }
  }
};

/// Reads into values of the struct's own types. Throws `bad-facts` (usage) with the place for what
/// is of another kind. A fact that is not there is unknown; members beyond those of `fields` are
/// not read.
class RecordReader {
 public:
  /// `shown` names the text in errors.
  RecordReader(std::string_view shown, const RecordKind& kind) : shown_(shown), kind_(kind) {}

  template <class T>
  void read(const nlohmann::json& from, const std::string& place, T& into) const {
    if constexpr (Record<T>) {
      if (!from.is_object()) throw wrong(place, "a record", from);
      T::fields(into, [&](const char* name, auto& field) { member(from, place, name, field); });
    } else {
      read_plain(from, place, into);
    }
  }
  template <class T>
  void read(const nlohmann::json& from, const std::string& place, std::optional<T>& into) const {
    if (from.is_null()) return;
    read(from, place, into.emplace());
  }
  template <class T>
  void read(const nlohmann::json& from, const std::string& place, std::vector<T>& into) const {
    if (!from.is_array()) throw wrong(place, "a list", from);
    for (const nlohmann::json& item : from) {
      const std::string at = fmt::format("{}[{}]", place, into.size());
      read(item, at, into.emplace_back());
    }
  }
  template <class T>
  void read(const nlohmann::json& from, const std::string& place, Fact<T>& into) const {
    if (!from.is_object()) throw wrong(place, "a record of `value` and `source`", from);
    member(from, place, "value", into.value);
    member(from, place, "source", into.source);
  }

 private:
  template <class T>
  void member(const nlohmann::json& record, const std::string& place, const char* name,
              T& into) const {
    const auto found = record.find(name);
    if (found == record.end()) return absent(into);
    read(*found, place.empty() ? name : place + "." + name, into);
  }
  template <class T>
  void absent(Fact<T>& fact) const {
    fact.source = fmt::format("`{}` does not say", shown_);
  }
  template <class T>
  void absent(T& value) const {
    if constexpr (Record<T>) {
      T::fields(value, [&](const char*, auto& field) { absent(field); });
    }
  }

  void read_plain(const nlohmann::json& from, const std::string& place, std::string& into) const {
    if (!from.is_string()) throw wrong(place, "a text", from);
    into = from.get<std::string>();
  }
  void read_plain(const nlohmann::json& from, const std::string& place, bool& into) const {
    if (!from.is_boolean()) throw wrong(place, "true or false", from);
    into = from.get<bool>();
  }
  void read_plain(const nlohmann::json& from, const std::string& place, std::uint64_t& into) const {
    if (!from.is_number_unsigned()) throw wrong(place, "a whole number, 0 or more", from);
    into = from.get<std::uint64_t>();
  }
  void read_plain(const nlohmann::json& from, const std::string& place, std::uint16_t& into) const {
    std::uint64_t number = 0;
    read_plain(from, place, number);
    if (number > UINT16_MAX) throw wrong(place, "a whole number below 65536", from);
    into = static_cast<std::uint16_t>(number);
  }
  void read_plain(const nlohmann::json& from, const std::string& place, double& into) const {
    if (!from.is_number()) throw wrong(place, "a number", from);
    into = from.get<double>();
  }

  Error wrong(const std::string& place, std::string_view wanted,
              const nlohmann::json& found) const {
    constexpr std::size_t kMost = 60;
    std::string text = printable(canonical(found));
    if (text.size() > kMost) text = printable(std::string_view(text).substr(0, kMost)) + "…";
    return usage_error("bad-facts", "`{}` cannot be read as facts", shown_)
        .because(fmt::format("`{}` is {}, where {} should be", place, text, wanted))
        .hint(std::string(kind_.hint));
  }

  std::string_view shown_;
  RecordKind kind_;
};

/// Throws unless `root` is of this kind: `facts-version` for another version of its schema, else
/// `bad-facts`.
void check_kind(const nlohmann::json& root, std::string_view shown, const RecordKind& kind);

/// On one line, keys sorted, without the newline.
template <Record T>
std::string render_record(const T& record, const RecordKind& kind) {
  nlohmann::json root = RecordWriter::written(record);
  root["schema"] = kind.schema;
  return canonical(root);
}

/// The other way. Throws as `parse_json`, `check_kind` and RecordReader do.
template <Record T>
T read_record(std::string_view text, std::string_view shown, const RecordKind& kind) {
  const nlohmann::json root = parse_json(text, shown);
  check_kind(root, shown, kind);
  T record;
  RecordReader(shown, kind).read(root, "", record);
  return record;
}

}  // namespace mlenv
