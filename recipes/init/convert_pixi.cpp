// pixi.toml, and pyproject.toml's `[tool.pixi]` (Pixi's documentation, "The pixi.toml manifest").
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "recipes/init/conda_packages.hpp"
#include "recipes/init/convert_pixi.hpp"
#include "recipes/init/pixi_options.hpp"
#include "recipes/steering.hpp"
#include "recipes/text.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

class Pixi {
 public:
  Pixi(const ConversionSource& source, Conversion& to) : source_(source), packages_(to), to_(to) {}

  /// All but packages.
  void settings(const TomlValue& root) {
    of_lock_ = true;
    const DefaultEnvironment chosen = default_environment(root.find("environments"));
    for (const char* key : {"workspace", "project"}) {
      if (const TomlValue* table = root.find(key)) workspace(*table);
    }
    if (chosen.itself) feature(root);
    const TomlValue* all = root.find("feature");
    for (const std::string& name : chosen.features) {
      if (const TomlValue* one = all == nullptr ? nullptr : all->find(name)) feature(*one);
    }
  }

  void convert(const TomlValue& root) {
    const DefaultEnvironment chosen = default_environment(root.find("environments"));
    if (chosen.itself) feature(root);
    for (const auto& [key, value] : root.members) {
      if (says_nothing(value)) continue;
      if (key == "workspace" || key == "project") {
        workspace(value);
      } else if (key == "feature") {
        features(value, chosen.features);
      } else if (key == "environments") {
        environments(value);
      } else if (!is_of_feature(key)) {
        to_.leave_out(place(value), key, "no key of the recipe stands for it");
      }
      if (key == "tasks") tasks(value);
    }
    packages_.finish();
  }

 private:
  /// What the environment that Pixi itself takes is made of.
  struct DefaultEnvironment {
    bool itself = true;  ///< what stands outside of features
    std::vector<std::string> features;
  };

  static DefaultEnvironment default_environment(const TomlValue* all) {
    DefaultEnvironment chosen;
    const TomlValue* one = all == nullptr ? nullptr : all->find("default");
    if (one == nullptr) return chosen;
    const TomlValue* features = one->kind == TomlKind::list ? one : one->find("features");
    if (features != nullptr) {
      for (const TomlValue& name : features->items) chosen.features.push_back(name.text);
    }
    const TomlValue* alone = one->find("no-default-feature");
    chosen.itself = alone == nullptr || !alone->boolean;
    return chosen;
  }

  static bool is_of_feature(std::string_view key) {
    constexpr std::array<std::string_view, 7> kKeys = {"dependencies",      "host-dependencies",
                                                       "pypi-dependencies", "system-requirements",
                                                       "activation",        "target",
                                                       "pypi-options"};
    return is_among(kKeys, key);
  }

  /// `[feature.NAME]`, or the same at the top.
  void feature(const TomlValue& root) {
    for (const auto& [key, value] : root.members) {
      if (key == "dependencies" || key == "host-dependencies") {
        if (!of_lock_) conda(value);
      } else if (key == "pypi-dependencies") {
        if (!of_lock_) pypi(value);
      } else if (key == "system-requirements") {
        of_machine(value);
      } else if (key == "activation") {
        activation(value);
      } else if (key == "target") {
        target(value);
      } else if (key == "pypi-options") {
        if (!of_lock_) pixi_indexes(source_, value, to_);
        pixi_options(source_, value, to_);
      }
    }
  }

  /// `[tasks]` without one, as `pixi init` writes it.
  static bool says_nothing(const TomlValue& value) {
    return value.kind == TomlKind::table && value.members.empty();
  }

  void features(const TomlValue& all, const std::vector<std::string>& chosen) {
    for (const auto& [name, value] : all.members) {
      if (std::find(chosen.begin(), chosen.end(), name) != chosen.end()) {
        feature(value);
      } else {
        to_.leave_out_with_others(place(value), "feature." + name,
                                  "features that the default environment does not have: add with "
                                  "`mlenv add` what the image needs");
      }
    }
  }

  void environments(const TomlValue& all) {
    for (const auto& [name, value] : all.members) {
      if (name == "default") continue;
      to_.leave_out_with_others(place(value), "environments." + name,
                                "one recipe is one environment: this is the default one");
    }
  }

  SourcePlace place(const TomlValue& value) const { return {source_.shown, value.line}; }
  void workspace(const TomlValue& table) {
    const std::string name = table.text_of("name");
    if (!name.empty()) to_.draft.name = image_name_from(name);
    const TomlValue* date = table.find("exclude-newer");
    if (date == nullptr) return;
    if (is_upload_date(date->text)) {
      to_.draft.choice.exclude_newer = date->text;
    } else {
      to_.leave_out(
          place(*date), "exclude-newer",
          "`exclude-newer` of the recipe is a day, as in `2024-06-30`, or a moment in UTC");
    }
  }

  /// A channel that says for which CUDA its packages are: `nvidia/label/cuda-12.4.0`.
  static bool is_label(std::string_view channel) { return says(channel, "/label/"); }

  /// Tasks are for whoever works on the project; but some complete the environment.
  void tasks(const TomlValue& all) {
    constexpr std::array<std::string_view, 5> kInstalls = {
        "pip install", "pip3 install", "apt-get install", "apt install", "setup.py install"};
    for (const auto& [name, task] : all.members) {
      const std::string command = task.kind == TomlKind::text ? task.text : task.text_of("cmd");
      const bool installs = std::any_of(kInstalls.begin(), kInstalls.end(),
                                        [&](std::string_view one) { return says(command, one); });
      if (!installs) continue;
      to_.leave_out_with_others(place(task), "tasks." + name,
                                "a task of Pixi's that installs, which an image does not run: "
                                "`mlenv add` takes what it brings");
    }
  }

  void conda(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      std::string version = value.kind == TomlKind::text ? value.text : value.text_of("version");
      if (value.find("git") != nullptr || value.find("path") != nullptr) {
        to_.leave_out(place(value), name, "a package that Pixi builds itself");
        continue;
      }
      if (version == "*") version.clear();
      const std::string build = value.text_of("build");
      const std::string channel = value.text_of("channel");
      std::string spec = is_label(channel) ? channel + "::" + name : name;
      if (!version.empty()) spec += " " + version;
      if (!build.empty()) spec += fmt::format("[build='{}']", build);
      packages_.package(place(value), spec);
    }
  }

  void pypi(const TomlValue& table) {
    for (const auto& [name, value] : table.members) {
      std::string spec = name;
      if (const auto extras = value.texts_of("extras"); !extras.empty()) {
        spec += fmt::format("[{}]", join(extras, ","));
      }
      const std::string version =
          value.kind == TomlKind::text ? value.text : value.text_of("version");
      if (const std::string git = value.text_of("git"); !git.empty()) {
        spec += " @ git+" + git;
        for (const char* key : {"rev", "tag", "branch"}) {
          if (!value.text_of(key).empty()) spec += '@' + value.text_of(key);
        }
        if (!value.text_of("subdirectory").empty()) {
          spec += "#subdirectory=" + value.text_of("subdirectory");
        }
      } else if (!value.text_of("path").empty()) {
        spec += " @ file:" + path_from_recipe(source_.path, value.text_of("path"), to_);
      } else if (!value.text_of("url").empty()) {
        spec += " @ " + value.text_of("url");
      } else if (version != "*") {
        spec += version;
      }
      if (!value.text_of("index").empty())
        to_.python_index(place(value), value.text_of("index"), false);
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
      for (const auto& [name, text] : value.members) {
        conda_variable(place(text), name, text.text, to_);
      }
    }
  }

  /// Of Linux what counts here, too.
  void target(const TomlValue& table) {
    for (const auto& [platform, value] : table.members) {
      if (platform != "linux" && platform != "linux-64" && platform != "unix") continue;
      feature(value);
    }
  }

  const ConversionSource& source_;
  CondaPackages packages_;
  Conversion& to_;
  bool of_lock_ = false;
};

TomlValue manifest_of(const ConversionSource& source) {
  TomlValue root = parse_toml({source.path, source.text, "source-invalid", {}});
  const TomlValue* tool = root.find("tool");
  const TomlValue* own = tool == nullptr ? nullptr : tool->find("pixi");
  return own == nullptr ? root : TomlValue(*own);
}

}  // namespace

void convert_pixi_settings(const ConversionSource& source, Conversion& to) {
  Pixi(source, to).settings(manifest_of(source));
}

void convert_pixi(const ConversionSource& source, Conversion& to) {
  Pixi(source, to).convert(manifest_of(source));
}

}  // namespace mlenv
