
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::string_view kSchema = "mlenv.facts/1";
constexpr std::string_view kSchemaName = "mlenv.facts/";

template <class T>
concept Record = requires(T& value) { T::fields(value, [](const char*, auto&) {}); };

/// In a class, so that each form sees all others.
struct Writer {
  template <class T>
  static json written(const std::optional<T>& value) {
    return value ? written(*value) : json(nullptr);
  }
  template <class T>
  static json written(const std::vector<T>& values) {
    json items = json::array();
    for (const T& value : values) items.push_back(written(value));
    return items;
  }
  template <class T>
  static json written(const Fact<T>& fact) {
    return {{"value", written(fact.value)}, {"source", fact.source}};
  }
  template <class T>
  static json written(const T& value) {
    if constexpr (Record<const T>) {
      json record = json::object();
      T::fields(value, [&](const char* name, const auto& field) { record[name] = written(field); });
      return record;
    } else {
      return value;
    }
  }
};

/// Reads into values of the struct's own types, with the place for errors.
class Reader {
 public:
  explicit Reader(std::string_view shown) : shown_(shown) {}

  template <class T>
  void read(const json& from, const std::string& place, T& into) const {
    if constexpr (Record<T>) {
      if (!from.is_object()) throw wrong(place, "a record", from);
      T::fields(into, [&](const char* name, auto& field) { member(from, place, name, field); });
    } else {
      read_plain(from, place, into);
    }
  }
  template <class T>
  void read(const json& from, const std::string& place, std::optional<T>& into) const {
    if (from.is_null()) return;
    read(from, place, into.emplace());
  }
  template <class T>
  void read(const json& from, const std::string& place, std::vector<T>& into) const {
    if (!from.is_array()) throw wrong(place, "a list", from);
    for (const json& item : from) {
      const std::string at = fmt::format("{}[{}]", place, into.size());
      read(item, at, into.emplace_back());
    }
  }
  template <class T>
  void read(const json& from, const std::string& place, Fact<T>& into) const {
    if (!from.is_object()) throw wrong(place, "a record of `value` and `source`", from);
    member(from, place, "value", into.value);
    member(from, place, "source", into.source);
  }

 private:
  template <class T>
  void member(const json& record, const std::string& place, const char* name, T& into) const {
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

  void read_plain(const json& from, const std::string& place, std::string& into) const {
    if (!from.is_string()) throw wrong(place, "a text", from);
    into = from.get<std::string>();
  }
  void read_plain(const json& from, const std::string& place, bool& into) const {
    if (!from.is_boolean()) throw wrong(place, "true or false", from);
    into = from.get<bool>();
  }
  void read_plain(const json& from, const std::string& place, std::uint64_t& into) const {
    if (!from.is_number_unsigned()) throw wrong(place, "a whole number, 0 or more", from);
    into = from.get<std::uint64_t>();
  }
  void read_plain(const json& from, const std::string& place, double& into) const {
    if (!from.is_number()) throw wrong(place, "a number", from);
    into = from.get<double>();
  }

  Error wrong(const std::string& place, std::string_view wanted, const json& found) const {
    constexpr std::size_t kMost = 60;
    std::string text = printable(canonical(found));
    if (text.size() > kMost) text = printable(std::string_view(text).substr(0, kMost)) + "…";
    return usage_error("bad-facts", "`{}` cannot be read as facts", shown_)
        .because(fmt::format("`{}` is {}, where {} should be", place, text, wanted))
        .hint("write it anew on its host: `mlenv facts --json >FILE`");
  }

  std::string_view shown_;
};

void check_schema(const json& root, std::string_view shown) {
  const std::string schema =
      root.is_object() && root.contains("schema") && root["schema"].is_string()
          ? root["schema"].get<std::string>()
          : "";
  if (schema == kSchema) return;
  if (schema.starts_with(kSchemaName)) {
    throw usage_error("facts-version", "`{}` is {}, this mlenv reads {}", shown, printable(schema),
                      kSchema)
        .hint("use the mlenv that wrote it, or write it anew with this one");
  }
  throw usage_error("bad-facts", "`{}` holds no facts of a host", shown)
      .because(schema.empty() ? "it names no schema" : fmt::format("it is `{}`", printable(schema)))
      .hint("`mlenv facts --json >FILE` writes them");
}

}  // namespace

std::string render_facts(const Facts& facts) {
  json root = Writer::written(facts);
  root["schema"] = kSchema;
  return canonical(root);
}

Facts read_facts(std::string_view text, std::string_view shown) {
  const json root = parse_json(text, shown);
  check_schema(root, shown);
  Facts facts;
  Reader(shown).read(root, "", facts);
  return facts;
}

}  // namespace mlenv
