// pixi.toml, and pyproject.toml's `[tool.pixi]` (Pixi's documentation, "The pixi.toml manifest").
#include <fmt/core.h>

#include "recipes/init/conda_packages.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

class Pixi {
 public:
  Pixi(const ConversionSource& source, Conversion& to) : source_(source), packages_(to), to_(to) {}

  void convert(const TomlValue& root) {
    for (const auto& [key, value] : root.members) {
      if (key == "workspace" || key == "project") {
        workspace(value);
      } else if (key == "dependencies" || key == "host-dependencies") {
        conda(value);
      } else if (key == "pypi-dependencies") {
        pypi(value);
      } else if (key == "system-requirements") {
        of_machine(value);
      } else if (key == "activation") {
        activation(value);
      } else if (key == "target") {
        target(value);
      } else if (key == "pypi-options") {
        indexes(value);
      } else {
        constexpr std::string_view kFeatures =
            "not asked for: add with `mlenv add` what the image needs";
        to_.leave_out(place(value), key,
                      key == "feature" || key == "environments"
                          ? kFeatures
                          : "no key of the recipe stands for it");
      }
    }
  }

 private:
  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }
  static std::string text(const TomlValue& table, const char* key) {
    const TomlValue* one = table.find(key);
    return one != nullptr && one->kind == TomlKind::text ? one->text : std::string{};
  }

  void workspace(const TomlValue& table) {
    const std::string name = text(table, "name");
    if (!name.empty()) to_.draft.name = image_name_from(name);
  }

  void conda(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      std::string version = value.kind == TomlKind::text ? value.text : text(value, "version");
      if (value.find("git") != nullptr || value.find("path") != nullptr) {
        to_.leave_out(place(value), name, "a package that Pixi builds itself");
        continue;
      }
      if (version == "*") version.clear();
      const std::string build = text(value, "build");
      std::string spec = name + (version.empty() ? "" : " " + version);
      if (!build.empty()) spec += fmt::format("[build='{}']", build);
      packages_.package(place(value), spec);
    }
  }

  void pypi(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      std::string spec = name;
      if (const TomlValue* extras = value.find("extras")) {
        std::vector<std::string> names;
        for (const TomlValue& one : extras->items) names.push_back(one.text);
        spec += fmt::format("[{}]", join(names, ","));
      }
      const std::string version =
          value.kind == TomlKind::text ? value.text : text(value, "version");
      if (const std::string git = text(value, "git"); !git.empty()) {
        spec += " @ git+" + git;
        for (const char* key : {"rev", "tag", "branch"}) {
          if (!text(value, key).empty()) spec += '@' + text(value, key);
        }
        if (!text(value, "subdirectory").empty()) {
          spec += "#subdirectory=" + text(value, "subdirectory");
        }
      } else if (!text(value, "path").empty()) {
        spec += " @ file:" + text(value, "path");
      } else if (!text(value, "url").empty()) {
        spec += " @ " + text(value, "url");
      } else if (version != "*") {
        spec += version;
      }
      if (!text(value, "index").empty())
        to_.python_index(place(value), text(value, "index"), false);
      to_.python_package(place(value), spec);
    }
  }

  void of_machine(const TomlValue& table) {
    for (const auto& [key, value] : table.members) {
      const std::string version =
          value.kind == TomlKind::integer ? std::to_string(value.integer) : value.text;
      if (key == "cuda" && !version.empty()) to_.cuda_release(place(value), version);
    }
  }

  void activation(const TomlValue& table) {
    for (const auto& [key, value] : table.members) {
      if (key != "env") {
        to_.leave_out(place(value), "activation." + key, "no key of the recipe stands for it");
        continue;
      }
      for (const auto& [name, text] : value.members) to_.env(place(text), name, text.text);
    }
  }

  /// Of Linux what counts here, too.
  void target(const TomlValue& table) {
    for (const auto& [platform, value] : table.members) {
      if (platform != "linux" && platform != "linux-64" && platform != "unix") continue;
      if (const TomlValue* found = value.find("dependencies")) conda(*found);
      if (const TomlValue* found = value.find("pypi-dependencies")) pypi(*found);
    }
  }

  void indexes(const TomlValue& table) {
    const std::string index = text(table, "index-url");
    if (!index.empty()) to_.python_index(place(table), index, true);
    if (const TomlValue* more = table.find("extra-index-urls")) {
      for (const TomlValue& one : more->items) to_.python_index(place(one), one.text, false);
    }
  }

  const ConversionSource& source_;
  CondaPackages packages_;
  Conversion& to_;
};

}  // namespace

void convert_pixi(const ConversionSource& source, Conversion& to) {
  const TomlValue root = parse_toml({source.path, source.text, "source-invalid", {}});
  const TomlValue* tool = root.find("tool");
  const TomlValue* own = tool == nullptr ? nullptr : tool->find("pixi");
  Pixi(source, to).convert(own == nullptr ? root : *own);
}

}  // namespace mlenv
