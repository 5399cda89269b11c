#include "recipes/init/poetry_markers.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "recipes/marker.hpp"
#include "recipes/requirement_name.hpp"
#include "recipes/text.hpp"
#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

class PoetryMarkers {
 public:
  /// One name's entry in a table of dependencies: a version, a table, or a list of these.
  void mention(const std::string& name, const TomlValue& value) {
    const std::string key = normalise_wheel_name(name);
    if (value.kind == TomlValue::Kind::list) {
      for (const TomlValue& one : value.items) mention(name, one);
      return;
    }
    const std::string marker = value.text_of("markers");
    const bool plain = !marker.empty() && !says(marker, "extra") && !marker_mistake(marker);
    if (plain && value.text_of("python").empty()) {
      markers_[key].insert(marker);
    } else {
      always_.insert(key);
    }
  }

  void always(const std::string& requirement) { always_.insert(name_of_requirement(requirement)); }

  std::map<std::string, std::string> all() const {
    std::map<std::string, std::string> found;
    for (const auto& [name, markers] : markers_) {
      if (always_.contains(name)) continue;
      std::vector<std::string> alternatives;
      for (const std::string& one : markers) {
        alternatives.push_back(markers.size() > 1 ? '(' + one + ')' : one);
      }
      found[name] = join(alternatives, " or ");
    }
    return found;
  }

 private:
  std::map<std::string, std::set<std::string>> markers_;
  std::set<std::string> always_;
};

const TomlValue* table_at(const TomlValue* in, std::initializer_list<const char*> keys) {
  for (const char* key : keys) in = in == nullptr ? nullptr : in->table(key);
  return in;
}

}  // namespace

std::map<std::string, std::string> markers_of_poetry_lock(const TomlValue& lock,
                                                          const TomlValue& pyproject) {
  PoetryMarkers markers;
  const auto mentions = [&](const TomlValue* table) {
    if (table == nullptr) return;
    for (const auto& [name, value] : table->members) markers.mention(name, value);
  };
  if (const TomlValue* packages = lock.find("package")) {
    const bool said =
        std::any_of(packages->items.begin(), packages->items.end(),
                    [](const TomlValue& one) { return one.find("markers") != nullptr; });
    if (said) return {};
    for (const TomlValue& one : packages->items) mentions(one.table("dependencies"));
  }
  mentions(table_at(&pyproject, {"tool", "poetry", "dependencies"}));
  if (const TomlValue* groups = table_at(&pyproject, {"tool", "poetry", "group"})) {
    for (const auto& [name, group] : groups->members) mentions(group.table("dependencies"));
  }
  if (const TomlValue* project = pyproject.table("project")) {
    for (const std::string& one : project->texts_of("dependencies")) markers.always(one);
  }
  return markers.all();
}

}  // namespace mlenv
