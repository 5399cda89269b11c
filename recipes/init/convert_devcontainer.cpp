// devcontainer.json (the development container specification, "devcontainer.json reference"): JSON
// with comments and commas at the end.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "recipes/init/build_commands.hpp"
#include "recipes/init/compose_service.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/json_source.hpp"
#include "recipes/recipe.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Without comments, and without the commas that JSON does not have.
std::string strict_json(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      out += c;
      if (c == '\\' && at + 1 < text.size()) out += text[++at];
      if (c == '"') quoted = false;
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size()) - 1;
    } else if (text.substr(at).starts_with("/*")) {
      at = std::min(text.find("*/", at + 2), text.size() - 2) + 1;
    } else {
      quoted = c == '"';
      const bool closes = c == '}' || c == ']';
      std::size_t last = out.find_last_not_of(" \t\r\n");
      if (closes && last != std::string::npos && out[last] == ',') out.erase(last, 1);
      out += c;
    }
  }
  return out;
}

class Devcontainer {
 public:
  Devcontainer(const ConversionSource& source, Conversion& to)
      : source_(source), to_(to), place_{source.shown, 0} {}

  void convert(const nlohmann::json& root) {
    for (const auto& [key, value] : root.items()) {
      if (of_image(key, value, root) || of_container(key, value)) continue;
      to_.leave_out_with_others(place_, key,
                                "settings of editors and runs, which no key stands for");
    }
    if (!workdir_.empty()) to_.draft.workdir = workdir_;
  }

 private:
  /// False for another key.
  bool of_image(const std::string& key, const nlohmann::json& value, const nlohmann::json& root) {
    if (key == "image" && value.is_string()) {
      convert_base_image(place_, value.get<std::string>(), to_);
    } else if (key == "build" && value.is_object()) {
      std::string name = json_text(value, "dockerfile");
      if (name.empty()) name = json_text(value, "dockerFile");
      if (!name.empty()) dockerfile(name, value);
    } else if (key == "dockerFile" && value.is_string()) {
      dockerfile(value.get<std::string>(), root);
    } else if (key == "dockerComposeFile") {
      compose(value, json_text(root, "service"));
    } else {  // of the Dockerfile, of Compose's
      return key == "context" || key == "args" || key == "service" || key == "target";
    }
    return true;
  }

  /// False for another key.
  bool of_container(const std::string& key, const nlohmann::json& value) {
    if (key == "name" && value.is_string()) {
      const std::string name = value.get<std::string>();
      if (!is_of_template(name)) to_.draft.name = image_name_from(name);
    } else if (key == "containerEnv" || key == "remoteEnv") {
      environment(value);
    } else if (key == "features" && value.is_object()) {
      features(value);
    } else if (key == "workspaceFolder" && value.is_string()) {
      workdir(value.get<std::string>());
    } else if (key == "postCreateCommand" || key == "onCreateCommand" ||
               key == "updateContentCommand") {
      command(value);
    } else {
      return false;
    }
    return true;
  }

  /// The names that the specification's templates give: they say nothing of the project.
  static bool is_of_template(std::string_view name) {
    constexpr std::array<std::string_view, 8> kBegins = {
        "Python 3",    "Ubuntu",          "Debian",   "Anaconda (",
        "Miniconda (", "Existing Docker", "Default ", "C++"};
    return std::any_of(kBegins.begin(), kBegins.end(),
                       [&](std::string_view one) { return name.starts_with(one); });
  }

  /// Where commands start; it is read last, for a Dockerfile's WORKDIR counts less.
  void workdir(std::string path) {
    constexpr std::string_view kFolder = "${localWorkspaceFolderBasename}";
    const std::size_t at = path.find(kFolder);
    if (at != std::string::npos) path.replace(at, kFolder.size(), project_folder());
    const bool known = path.find('$') == std::string::npos;
    if (known && is_clean_absolute_path(path)) workdir_ = path;
  }

  /// The name of the folder that an editor opens: the one above `.devcontainer`.
  std::string project_folder() const {
    std::error_code unknown;
    const fs::path mine = fs::weakly_canonical(source_.path, unknown).parent_path();
    for (fs::path at = mine; at.has_filename(); at = at.parent_path()) {
      if (at.filename() == ".devcontainer") return at.parent_path().filename().string();
    }
    return mine.filename().string();
  }

  void environment(const nlohmann::json& variables) {
    if (!variables.is_object()) return;
    for (const auto& [name, value] : variables.items()) {
      if (!value.is_string()) continue;
      const std::string text = value.get<std::string>();
      if (text.find("${") != std::string::npos) {
        to_.leave_out(place_, name + "=" + text, "it is of the machine that runs the container");
      } else if (name != "PATH") {
        to_.env(place_, name, text);
      }
    }
  }

  /// `build` holds `context` and `args`.
  void dockerfile(const std::string& name, const nlohmann::json& build) {
    const fs::path path = source_.path.parent_path() / name;
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) {
      return to_.leave_out(place_, "dockerfile: " + name, "there is no such file here");
    }
    DockerBuild how;
    const std::string context = json_text(build, "context");
    if (!context.empty()) how.context = (source_.path.parent_path() / context).lexically_normal();
    if (const auto args = build.find("args"); args != build.end() && args->is_object()) {
      for (const auto& [key, value] : args->items()) {
        if (!value.is_string()) continue;
        const std::string text = value.get<std::string>();
        if (says(text, "${")) {
          to_.leave_out(place_, key + "=" + text, "it is of the machine that builds the container");
        } else {
          how.args[key] = text;
        }
      }
    }
    how.target = json_text(build, "target");
    convert_dockerfile(read_source(path, to_), to_, how);
  }

  /// Files behind the first add to the service.
  void compose(const nlohmann::json& files, const std::string& service) {
    std::vector<std::string> names;
    if (files.is_string()) names.push_back(files.get<std::string>());
    for (const nlohmann::json& one : files) {
      if (files.is_array() && one.is_string()) names.push_back(one.get<std::string>());
    }
    bool first = true;
    for (const std::string& name : names) {
      convert_compose_service(place_, source_.path.parent_path() / name, service, first, to_);
      first = false;
    }
  }

  /// What Debian calls what a feature installs; empty: that is not known.
  static std::string_view debian_of(std::string_view feature) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFeatures = {
        {{"/git", "git"},
         {"/git-lfs", "git-lfs"},
         {"/node", "nodejs npm"},
         {"/rust", "rustc cargo"},
         {"/java", "default-jdk-headless"},
         {"/go", "golang-go"}}};
    for (const auto& [ending, packages] : kFeatures) {
      if (feature.ends_with(ending)) return packages;
    }
    return {};
  }

  /// `git, curl less`
  void listed_packages(std::string list) {
    std::replace(list.begin(), list.end(), ',', ' ');
    for (const std::string_view one : split(list, ' ')) {
      if (!one.empty()) to_.system_package(place_, one);
    }
  }

  void features(const nlohmann::json& all) {
    for (const auto& [key, value] : all.items()) {
      const std::string name = key.substr(0, key.rfind(':'));
      const std::string version = json_text(value, "version");
      const bool versioned = !version.empty() && is_digit(version.front());
      if (name.ends_with("/python")) {
        // `none`: tools alone, for an editor.
        to_.draft.wants_python = to_.draft.wants_python || version != "none";
        if (versioned) to_.python_version(place_, version);
      } else if (const std::string_view debian = debian_of(name); !debian.empty()) {
        for (const std::string_view one : split(debian, ' ')) to_.system_package(place_, one);
      } else if (name.ends_with("/apt-packages") || name.ends_with("/apt-get-packages")) {
        listed_packages(json_text(value, "packages"));
      } else if (name.ends_with("/poetry") || name.ends_with("/uv") || name.ends_with("/pdm")) {
        to_.leave_out(place_, key, "not needed: mlenv does without it");
      } else if (name.ends_with("/nvidia-cuda")) {
        if (versioned) to_.cuda_release(place_, version);
      } else {
        to_.leave_out_with_others(
            place_, key, "features: what they install can stand in `system` and `packages`");
      }
    }
  }

  void command(const nlohmann::json& value) {
    std::string text;
    if (value.is_string()) {
      text = value.get<std::string>();
    } else if (value.is_array()) {
      for (const nlohmann::json& word : value) {
        if (word.is_string())
          text += (text.empty() ? "" : " ") + shell_quoted(word.get<std::string>());
      }
    } else if (value.is_object()) {
      for (const auto& [name, one] : value.items()) command(one);
      return;
    }
    const fs::path folder = root_folder();
    const FindFile find = [&](std::string_view name) -> std::optional<fs::path> {
      std::error_code unknown;
      fs::path path = folder / name;
      if (fs::is_regular_file(path, unknown)) return path;
      return std::nullopt;
    };
    to_.set_later_wins();
    BuildCommands commands{place_, text, {}, {}, {}, {}, {}};
    commands.all_here = true;
    commands.obstacle = "it runs in the container with the project mounted: `mlenv run` starts it";
    convert_commands(commands, find, to_);
  }

  /// The project's: `.devcontainer` and the folders in it are the container's.
  fs::path root_folder() const {
    fs::path folder = source_.path.parent_path();
    for (int up = 0; up < 3; ++up) {
      if (folder.filename() == ".devcontainer") return folder.parent_path();
      folder = folder.parent_path();
    }
    return source_.path.parent_path();
  }

  const ConversionSource& source_;
  Conversion& to_;
  SourcePlace place_;
  std::string workdir_;
};

}  // namespace

void convert_devcontainer(const ConversionSource& source, Conversion& to) {
  const nlohmann::json root = json_of(source, strict_json(source.text));
  Devcontainer(source, to).convert(root);
}

}  // namespace mlenv
