// tests/schema/facts-1.json says what Facts holds: the same names, all of them required, of the
// same kinds.
#include <gtest/gtest.h>

#include <concepts>
#include <set>

#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "runner/facts/facts.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

template <class T>
struct Inner {};
template <class T>
struct Inner<Fact<T>> {
  using Value = T;
};
template <class T>
struct Inner<std::vector<T>> {
  using Item = T;
};
template <class T>
struct Inner<std::optional<T>> {
  using Maybe = T;
};

class Checker {
 public:
  explicit Checker(const json& root) : root_(root) {}

  template <class T>
  void check(const json& at, const std::string& place) {
    const json& schema = resolved(at);
    if constexpr (requires { typename Inner<T>::Value; }) {
      names(schema, {"value", "source"}, place);
      check<std::optional<typename Inner<T>::Value>>(schema["properties"]["value"], place);
      check<std::string>(schema["properties"]["source"], place + ".source");
    } else if constexpr (requires { typename Inner<T>::Maybe; }) {
      ASSERT_TRUE(schema.contains("anyOf")) << place;
      ASSERT_EQ(schema["anyOf"].size(), 2U) << place;
      EXPECT_EQ(schema["anyOf"][1]["type"], "null") << place;
      check<typename Inner<T>::Maybe>(schema["anyOf"][0], place);
    } else if constexpr (requires { typename Inner<T>::Item; }) {
      EXPECT_EQ(schema["type"], "array") << place;
      check<typename Inner<T>::Item>(schema["items"], place + "[]");
    } else if constexpr (std::same_as<T, std::string>) {
      EXPECT_EQ(schema["type"], "string") << place;
    } else if constexpr (std::same_as<T, bool>) {
      EXPECT_EQ(schema["type"], "boolean") << place;
    } else if constexpr (std::same_as<T, double>) {
      EXPECT_EQ(schema["type"], "number") << place;
    } else if constexpr (std::same_as<T, std::uint64_t>) {
      EXPECT_EQ(schema["type"], "integer") << place;
    } else {
      record<T>(schema, place);
    }
  }

 private:
  const json& resolved(const json& schema) const {
    if (!schema.contains("$ref")) return schema;
    const std::string name = schema["$ref"].get<std::string>().substr(sizeof("#/$defs/") - 1);
    return root_["$defs"][name];
  }

  void names(const json& schema, std::set<std::string> wanted, const std::string& place) {
    std::set<std::string> found;
    for (const auto& [name, property] : schema["properties"].items()) found.insert(name);
    std::set<std::string> required;
    for (const json& name : schema["required"]) required.insert(name.get<std::string>());
    if (place.empty()) wanted.insert("schema");
    EXPECT_EQ(found, wanted) << "properties of `" << place << "`";
    EXPECT_EQ(required, wanted) << "required of `" << place << "`";
    EXPECT_EQ(schema["additionalProperties"], false) << place;
  }

  template <class T>
  void record(const json& schema, const std::string& place) {
    T value{};
    std::set<std::string> wanted;
    T::fields(value, [&](const char* name, auto&) { wanted.insert(name); });
    names(schema, wanted, place);
    T::fields(value, [&](const char* name, auto& field) {
      if (!schema["properties"].contains(name)) return;
      check<std::remove_cvref_t<decltype(field)>>(schema["properties"][name], place + "." + name);
    });
  }

  const json& root_;
};

TEST(FactsSchema, SaysWhatFactsHold) {
  const json root =
      json::parse(read_file(fs::path(MLENV_SOURCE_FOLDER) / "tests/schema/facts-1.json"));
  Checker{root}.check<Facts>(root, "");
}

}  // namespace
}  // namespace mlenv
