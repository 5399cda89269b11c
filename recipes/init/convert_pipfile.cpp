// Pipfile and Pipfile.lock (Pipenv's documentation, "Pipfile & Pipfile.lock").
#include <array>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "recipes/init/json_source.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

std::string pipenv_text(const TomlValue& value, const char* key) { return value.text_of(key); }
std::string pipenv_text(const nlohmann::json& value, const char* key) {
  return json_text(value, key);
}

std::vector<std::string> pipenv_extras(const TomlValue& value) { return value.texts_of("extras"); }
std::vector<std::string> pipenv_extras(const nlohmann::json& value) {
  std::vector<std::string> extras;
  const auto list = value.find("extras");
  if (list == value.end() || !list->is_array()) return extras;
  for (const nlohmann::json& one : *list) {
    if (one.is_string()) extras.push_back(one.get<std::string>());
  }
  return extras;
}

/// Where a package is in place of an index; empty: an index has it.
template <typename Value>
std::string pipenv_address(const Value& value, const fs::path& file, const Conversion& to) {
  std::string address;
  if (const std::string git = pipenv_text(value, "git"); !git.empty()) {
    address = "git+" + git;
    if (const std::string ref = pipenv_text(value, "ref"); !ref.empty()) address += '@' + ref;
  } else if (const std::string path = pipenv_text(value, "path"); !path.empty()) {
    address = path_from_recipe(file, path, to);
  } else {
    address = pipenv_text(value, "file");
    if (!address.empty() && !says(address, "://")) address = path_from_recipe(file, address, to);
  }
  const std::string below = pipenv_text(value, "subdirectory");
  if (address.empty() || below.empty()) return address;
  // A fragment is a URL's.
  return (says(address, "://") ? address : "file:" + address) + "#subdirectory=" + below;
}

/// `markers`, and each variable of PEP 508 as a key: `sys_platform = "== 'linux'"`.
template <typename Value>
std::string pipenv_marker(const Value& value) {
  constexpr std::array<const char*, 10> kVariables = {"python_version",
                                                      "python_full_version",
                                                      "os_name",
                                                      "sys_platform",
                                                      "platform_machine",
                                                      "platform_system",
                                                      "platform_release",
                                                      "platform_version",
                                                      "implementation_name",
                                                      "platform_python_implementation"};
  std::vector<std::string> all;
  if (std::string whole = pipenv_text(value, "markers"); !whole.empty()) all.push_back(whole);
  for (const char* variable : kVariables) {
    const std::string condition = pipenv_text(value, variable);
    if (!condition.empty()) all.push_back(fmt::format("{} {}", variable, condition));
  }
  if (all.size() < 2) return join(all, "");
  for (std::string& one : all) {
    if (says(one, " or ")) one = '(' + one + ')';
  }
  return join(all, " and ");
}

/// `{version = ">=1", extras = ["x"], git = "…", ref = "…"}`.
template <typename Value>
std::string pipenv_requirement(const std::string& name, const Value& value, const fs::path& file,
                               const Conversion& to) {
  const std::vector<std::string> extras = pipenv_extras(value);
  std::string text = name + (extras.empty() ? "" : fmt::format("[{}]", join(extras, ",")));
  if (const std::string address = pipenv_address(value, file, to); !address.empty()) {
    text += " @ " + address;
  } else if (const std::string version = pipenv_text(value, "version"); version != "*") {
    text += version;
  }
  const std::string marker = pipenv_marker(value);
  return marker.empty() ? text : text + " ; " + marker;
}

class Pipfile {
 public:
  Pipfile(const ConversionSource& source, Conversion& to) : source_(source), to_(to) {}

  void convert() {
    to_.draft.wants_python = true;
    const TomlValue root = parse_toml({source_.path, source_.text, "source-invalid", {}});
    for (const auto& [key, table] : root.members) {
      if (key == "packages") {
        packages(table);
      } else if (key == "requires") {
        python(table);
      } else if (key == "source") {
        indexes(table);
      } else if (key == "dev-packages") {
        for_development(table);
      } else if (key == "pipenv") {
        settings(table);
      } else {
        to_.leave_out(place(table), key, "no key of the recipe stands for it");
      }
    }
  }

 private:
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }

  void packages(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      const bool plain = value.kind == TomlKind::text;
      if (const std::string index = pipenv_text(value, "index"); comes_in_builds(name)) {
        indexes_.insert(index);
      }
      to_.python_package(place(value), plain ? name + (value.text == "*" ? "" : value.text)
                                             : pipenv_requirement(name, value, source_.path, to_));
    }
  }

  void python(const TomlValue& table) {
    const std::string full = pipenv_text(table, "python_full_version");
    const std::string release = full.empty() ? pipenv_text(table, "python_version") : full;
    if (release.empty() || release == "*") return;
    if (is_digit(release.front())) return to_.python_version(place(table), release);
    to_.python_range(place(table), release);
  }

  void indexes(const TomlValue& list) {
    for (const TomlValue& one : list.items) {
      const std::string url = one.text_of("url");
      const std::string name = one.text_of("name");
      if (url.empty()) continue;
      const bool first = &one == &list.items.front();
      // The first is where all packages come from that name no other; Pipenv writes its own as
      // `pypi`.
      if (is_pypi(url)) continue;
      if (first && !name.empty() && name != "pypi") {
        to_.python_index(place(one), url, true);
        continue;
      }
      if (!first && !name.empty() && indexes_.contains(name)) {
        to_.python_index(place(one), url, false);
        continue;
      }
      to_.leave_out_with_others(
          place(one), url, "indexes: this machine's are used; others can be named in `sources`");
    }
  }

  void settings(const TomlValue& table) {
    if (table.is_set("allow_prereleases")) to_.draft.choice.prerelease = "allow";
  }

  void for_development(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      to_.leave_out_with_others(place(value), name,
                                "for development: add with `mlenv add` what the image needs");
    }
  }

  const ConversionSource& source_;
  Conversion& to_;
  std::set<std::string> indexes_;  ///< names of those that a framework's builds come from
};

const nlohmann::json& object_in(const nlohmann::json& in, const char* key) {
  static const nlohmann::json none = nlohmann::json::object();
  const auto found = in.find(key);
  return found != in.end() && found->is_object() ? *found : none;
}

}  // namespace

void convert_pipfile(const ConversionSource& source, Conversion& to) {
  Pipfile(source, to).convert();
}

void convert_pipfile_lock(const ConversionSource& source, Conversion& to) {
  to.draft.wants_python = true;
  const nlohmann::json root = json_of(source, source.text);
  const SourcePlace whole{source.shown, 0};
  const std::string python =
      json_text(object_in(object_in(root, "_meta"), "requires"), "python_version");
  if (!python.empty()) to.python_version(whole, python);
  for (const auto& [name, value] : object_in(root, "default").items()) {
    if (!value.is_object()) continue;
    to.python_package(whole, pipenv_requirement(name, value, source.path, to));
  }
}

}  // namespace mlenv
