// Pipfile and Pipfile.lock (Pipenv's documentation, "Pipfile & Pipfile.lock").
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "recipes/init/json_source.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

std::string pipenv_text(const TomlValue& value, const char* key) {
  const TomlValue* one = value.find(key);
  return one != nullptr && one->kind == TomlKind::text ? one->text : std::string{};
}

/// `{version = ">=1", extras = ["x"], git = "…", ref = "…"}`, or a version alone.
std::string pipenv_requirement(const std::string& name, const TomlValue& value) {
  if (value.kind == TomlKind::text) return name + (value.text == "*" ? "" : value.text);
  std::vector<std::string> extras;
  if (const TomlValue* list = value.find("extras")) {
    for (const TomlValue& one : list->items) extras.push_back(one.text);
  }
  std::string text = name + (extras.empty() ? "" : fmt::format("[{}]", join(extras, ",")));
  const std::string git = pipenv_text(value, "git");
  const std::string path = pipenv_text(value, "path") + pipenv_text(value, "file");
  if (!git.empty()) {
    text += " @ git+" + git;
    if (const std::string ref = pipenv_text(value, "ref"); !ref.empty()) text += '@' + ref;
    const std::string below = pipenv_text(value, "subdirectory");
    if (!below.empty()) text += "#subdirectory=" + below;
  } else if (!path.empty()) {
    text += " @ " + path;
  } else if (const std::string version = pipenv_text(value, "version"); version != "*") {
    text += version;
  }
  const std::string marker = pipenv_text(value, "markers");
  return marker.empty() ? text : text + " ; " + marker;
}

}  // namespace

// NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
void convert_pipfile(const ConversionSource& source, Conversion& to) {
  const TomlValue root = parse_toml({source.path, source.text, "source-invalid", {}});
  for (const auto& [key, table] : root.members) {
    if (key == "packages") {
      for (const auto& [name, value] : table.members) {
        to.python_package({source.shown, value.line}, pipenv_requirement(name, value));
      }
    } else if (key == "requires") {
      const std::string python = pipenv_text(table, "python_full_version");
      const std::string release = python.empty() ? pipenv_text(table, "python_version") : python;
      if (!release.empty()) to.python_version({source.shown, table.line}, release);
    } else if (key == "source") {
      for (const TomlValue& one : table.items) {
        const std::string url = pipenv_text(one, "url");
        if (!url.empty()) {
          to.leave_out_with_others({source.shown, one.line}, url,
                                   "indexes: this machine's are used; others can be named in "
                                   "`sources`");
        }
      }
    } else if (key == "dev-packages") {
      for (const auto& [name, value] : table.members) {
        to.leave_out_with_others({source.shown, value.line}, name,
                                 "for development: add with `mlenv add` what the image needs");
      }
    } else if (key != "pipenv") {
      to.leave_out({source.shown, table.line}, key, "no key of the recipe stands for it");
    }
  }
}

void convert_pipfile_lock(const ConversionSource& source, Conversion& to) {
  const nlohmann::json root = json_of(source, source.text);
  const nlohmann::json none = nlohmann::json::object();
  const auto object = [&](const nlohmann::json& in, const char* key) -> const nlohmann::json& {
    const auto found = in.find(key);
    return found != in.end() && found->is_object() ? *found : none;
  };
  const SourcePlace whole{source.shown, 0};
  const std::string python = json_text(object(object(root, "_meta"), "requires"), "python_version");
  if (!python.empty()) to.python_version(whole, python);
  for (const auto& [name, value] : object(root, "default").items()) {
    if (!value.is_object()) continue;
    std::string text = name;
    const auto extras = value.find("extras");
    if (extras != value.end() && extras->is_array() && !extras->empty()) {
      std::vector<std::string> names;
      for (const nlohmann::json& one : *extras) {
        if (one.is_string()) names.push_back(one.get<std::string>());
      }
      text += fmt::format("[{}]", join(names, ","));
    }
    const std::string git = json_text(value, "git");
    const std::string path = json_text(value, "path") + json_text(value, "file");
    if (!git.empty()) {
      text += fmt::format(" @ git+{}@{}", git, json_text(value, "ref"));
    } else {
      text += path.empty() ? json_text(value, "version") : " @ " + path;
    }
    const std::string marker = json_text(value, "markers");
    to.python_package(whole, marker.empty() ? text : text + " ; " + marker);
  }
}

}  // namespace mlenv
