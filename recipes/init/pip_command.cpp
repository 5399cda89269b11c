#include "recipes/init/pip_command.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/pip_options.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/project_name.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using PipSpan = std::span<const std::string>;

constexpr std::string_view kPipDoes = "not needed: mlenv does that itself";
constexpr std::string_view kOfOtherStage =
    "not needed: what another stage builds is taken where that names it";

constexpr std::array<std::string_view, 8> kNothingAtBegin = {"--disable-pip-version-check",
                                                             "--break-system-packages",
                                                             "--no-warn-script-location",
                                                             "--quiet",
                                                             "--verbose",
                                                             "--no-warn-conflicts",
                                                             "--compile-bytecode",
                                                             "--no-color"};
/// Letters that stand alone, and together: `-Uq`.
constexpr std::string_view kPipLetters = "Uqv";

bool is_only_letters(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') &&
         word.find_first_not_of(kPipLetters, 1) == std::string_view::npos;
}

/// `pip install --upgrade pip setuptools wheel`
bool installs_only_tools(PipSpan words) {
  constexpr std::array<std::string_view, 13> kTools = {
      "pip",    "setuptools",           "wheel", "uv",         "poetry",    "pdm",
      "pipenv", "poetry-plugin-export", "hatch", "virtualenv", "pip-tools", "poetry-core",
      "pipx"};
  bool some = false;
  for (const std::string& word : words) {
    if (word.starts_with('-')) continue;
    const std::string_view name = std::string_view(word).substr(0, word.find_first_of("=<>!~["));
    if (!is_among(kTools, name)) return false;
    some = true;
  }
  return some;
}

class PipCommand {
 public:
  PipCommand(const InstallCommand& command, const FindFile& file, Conversion& to)
      : command_(command), file_(file), to_(to) {}

  void convert(PipSpan words) {
    while (!words.empty() && words.front().starts_with('-')) words = words.subspan(1);
    if (words.empty()) return leave_out(command_.text, kPipDoes);
    const std::string& verb = words.front();
    if (verb == "config" && words.size() == 4 && words[1] == "set") return config(words);
    constexpr std::array<std::string_view, 8> kLeaveNothing = {
        "cache", "config", "check", "list", "freeze", "download", "compile", "show"};
    if (is_among(kLeaveNothing, verb)) return leave_out(command_.text, kPipDoes);
    words = words.subspan(1);
    if (verb == "sync" && !words.empty()) return sync(words);
    if (verb != "install" && verb != "wheel") {
      return leave_out(
          command_.text,
          "only what a package manager installs has a key; the rest can be a step of `run`");
    }
    if (installs_only_tools(words)) return leave_out(command_.text, kPipDoes);
    nightly_ = std::any_of(words.begin(), words.end(), [](const std::string& one) {
      return says(one, "://") && says(one, "/nightly");
    });
    while (!words.empty()) words = words.subspan(std::min(word(words), words.size()));
    for (const fs::path& folder : projects_) {
      install_project(command_.place, command_.text,
                      {ProjectInstall::Tool::uv, folder, false, extras_, groups_}, to_);
    }
    if (pre_) tell_prereleases();
    to_.command_indexes(command_.place, std::move(indexes_));
  }

 private:
  /// `pip config set global.index-url URL`
  void config(PipSpan words) {
    std::string name = words[2];
    name.erase(0, name.find('.') + 1);
    if (name != "index-url" && name != "extra-index-url") {
      return leave_out(command_.text, kPipDoes);
    }
    to_.python_index(command_.place, words[3], name == "index-url");
  }

  /// A version that is a pre-release is taken as it is; what has nothing but them, too.
  void tell_prereleases() {
    if (open_.empty()) return;
    to_.note(command_.place, "pip install --pre " + join(open_, " "),
             "the newest release is taken: `>=0.dev0` behind a package's name lets it be a "
             "pre-release, and `prerelease: allow` all of them");
  }

  /// `-c constraints.txt`
  void constraints(const std::string& name) {
    const std::optional<fs::path> path = file_(name);
    const std::optional<std::string> mine =
        path ? name_from_recipe(to_, *path) : std::optional<std::string>();
    if (!mine) {
      return leave_out("-c " + name, path ? "`constraints` names files of the recipe's own folder"
                                          : "no such file was found here");
    }
    auto& all = to_.draft.constraints;
    if (std::find(all.begin(), all.end(), *mine) == all.end()) all.push_back(*mine);
  }
  void leave_out(std::string_view text, std::string_view why) {
    to_.leave_out(command_.place, text, why);
  }

  /// `uv pip sync requirements.txt`
  void sync(PipSpan words) {
    for (const std::string& word : words) {
      if (!word.starts_with('-')) requirements(word);
    }
  }

  /// How many words it took.
  std::size_t word(PipSpan words) {
    const std::string& first = words.front();
    if (!first.starts_with('-')) {
      package(first);
      return 1;
    }
    if (is_only_letters(first)) return 1;
    for (const std::string_view begin : kNothingAtBegin) {
      if (first.starts_with(begin)) return 1;
    }
    std::string name = first.substr(0, first.find('='));
    std::string value = name.size() < first.size() ? first.substr(name.size() + 1) : "";
    std::size_t took = 1;
    if (!name.starts_with("--") && first.size() > 2) {  // `-rfile`, `-Ur`
      const std::size_t at = first.find_first_not_of(kPipLetters, 1);
      value = first.substr(at + 1);
      name = {'-', first[at]};
    }
    const PipWord* option = pip_option(name);
    if (option != nullptr && option->valued && value.empty() && words.size() > 1) {
      value = words[1];
      took = 2;
    }
    if (option != nullptr) {
      apply(*option, value);
    } else {
      leave_out(shown(name, value), "an option of pip that no key stands for");
    }
    return took;
  }

  static std::string shown(std::string_view name, std::string_view value) {
    return fmt::format("pip install {}{}{}", name, value.empty() ? "" : " ", value);
  }

  void apply(const PipWord& option, const std::string& value) {
    switch (option.meaning) {
      case PipMeaning::requirements:
        return this->requirements(value);
      case PipMeaning::constraints:
        return this->constraints(value);
      case PipMeaning::prereleases:
        pre_ = true;
        return;
      case PipMeaning::editable:
        if (!cloned(value) && !of_folder(value))
          to_.requirement_line(command_.place, "-e " + value, {});
        return;
      case PipMeaning::index:
        indexes_.index = value;
        return;
      case PipMeaning::extra_index:
        return to_.python_index(command_.place, value, false);
      case PipMeaning::links:
        if (is_copied(value)) return leave_out(shown(option.name, value), kOfOtherStage);
        indexes_.links.push_back(value);
        return;
      case PipMeaning::extra:
        extras_.push_back(value);
        return;
      case PipMeaning::group:
        groups_.push_back(value);
        return;
      case PipMeaning::nothing:
        return;
      case PipMeaning::other_key:
        return leave_out(shown(option.name, value),
                         fmt::format("the recipe says it with `{}`", option.key));
      case PipMeaning::no_key:
        return to_.leave_out_with_others(command_.place, shown(option.name, value),
                                         "options of pip that no key stands for");
      case PipMeaning::of_a_file:
        return leave_out(shown(option.name, value),
                         "it counts where it stands in a requirements file that `requirements` "
                         "names");
    }
  }

  void package(const std::string& text) {
    const bool path = text.starts_with('.') || text.starts_with('/') ||
                      (says(text, "/") && text.find(':') == std::string::npos);
    const bool wheels = text.ends_with(".whl") || text.ends_with('*');
    if (wheels && is_copied(text)) return leave_out(text, kOfOtherStage);
    if (cloned(text) || (path && of_folder(text)) || wheel_file(text)) return;
    auto read = parse_requirement(text);
    auto* one = std::get_if<Requirement>(&read);
    if (nightly_ && one != nullptr && one->specifier.empty() && one->address.empty() &&
        comes_in_builds(one->normalised_name())) {
      one->specifier = ">=0.dev0";  // of these such an index has nothing but pre-releases
      to_.python_package(command_.place, one->str());
    } else {
      to_.python_package(command_.place, text);
    }
    if (one != nullptr && one->address.empty() && !says_prerelease(one->specifier)) {
      open_.push_back(one->name);
    }
    if (one != nullptr && one->address.empty()) indexes_.packages.push_back(one->normalised_name());
  }

  /// `/wheels/*.whl`, which another stage built.
  bool is_copied(std::string name) const {
    if (name.starts_with("file://")) name.erase(0, 7);
    if (name.find(':') != std::string::npos || name.find('/') == std::string::npos) return false;
    const std::string where = in_image(name) + '/';
    return std::any_of(command_.copied.begin(), command_.copied.end(),
                       [&](const std::string& folder) { return where.starts_with(folder + '/'); });
  }

  std::string in_image(const std::string& name) const {
    const fs::path folder = command_.folder.empty() ? "/" : command_.folder;
    return (folder / name).lexically_normal().string();
  }

  /// `pip install .` in a repository that the build cloned.
  bool cloned(const std::string& word) {
    const bool is_path =
        word.starts_with('.') || word.starts_with('/') ||
        (word.find('/') != std::string::npos && word.find(':') == std::string::npos);
    const std::size_t open = word.find('[');
    const std::string extras = open == std::string::npos ? "" : word.substr(open);
    const std::string where = in_image(word.substr(0, open));
    for (const Clone& clone : command_.clones) {
      const std::string path = clone.path;
      const bool inside = is_path && where.starts_with(path + '/');
      if (where != path && where != path + '/' && !inside) continue;
      std::string below = where.substr(std::min(path.size() + 1, where.size()));
      while (below.ends_with('/') || below.ends_with('.')) below.pop_back();
      if (is_by_ssh(clone) && is_clone_of_folder(clone, to_.folder())) {
        const auto mine = name_from_recipe(to_, to_.folder() / below);
        if (mine) {
          to_.python_package(command_.place, (*mine == "." ? *mine : "./" + *mine) + extras);
          return true;
        }
      }
      std::string text = clone.address() + (below.empty() ? "" : "#subdirectory=" + below);
      to_.python_package(command_.place, text + extras);
      return true;
    }
    return false;
  }

  /// A pin, or a bound with letters in it.
  static bool says_prerelease(std::string_view specifier) {
    const std::string_view version = specifier.substr(0, specifier.find('+'));
    return specifier.starts_with("==") ? !specifier.ends_with('*')
                                       : std::any_of(version.begin(), version.end(), is_letter);
  }

  /// A project's folder that lies here, elsewhere than in the recipe's own: `pip install ./server`.
  bool of_folder(const std::string& word) {
    const std::size_t open = word.find('[');
    const std::string place = word.substr(0, open);
    const fs::path where = (fs::path(command_.folder) / place).lexically_normal();
    const std::string name =
        where.has_filename() ? where.filename().string() : where.parent_path().filename().string();
    for (const char* file : {"pyproject.toml", "setup.py", "setup.cfg"}) {
      const std::optional<fs::path> found = file_((fs::path(place) / file).string());
      // In the image another file of that name may be found, beside the Dockerfile.
      const bool copied = command_.paths && !command_.paths((where / file).string()).empty();
      const bool image = !command_.folder.empty() && !copied;
      if (!found || (image && found->parent_path().filename() != name)) continue;
      const std::optional<std::string> mine = name_from_recipe(to_, found->parent_path());
      if (!mine || (*mine == "." && (image || place == "."))) return false;
      to_.python_package(command_.place, (*mine == "." ? *mine : "./" + *mine) +
                                             (open == std::string::npos ? "" : word.substr(open)));
      return true;
    }
    return false;
  }

  /// `pip install /tmp/torch-2.0.0-cp310-….whl`, which other commands brought: the release that it
  /// is of. `dist/*.whl` of this project is the project.
  bool wheel_file(const std::string& word) {
    const bool file = word.ends_with(".whl") && word.find(':') == std::string::npos;
    if (!file) return false;
    const fs::path path = word;
    if (command_.builds_wheel && path.filename() == "*.whl" &&
        path.parent_path().filename() == "dist") {
      to_.python_package(command_.place, ".");
      return true;
    }
    const std::optional<NamedRelease> release = parse_release_file(path.filename().string());
    if (!release || says(release->version, "dev") || file_(word)) return false;
    to_.note(command_.place, word, "the release of that name is taken from an index");
    to_.python_package(command_.place, release->name + "==" + release->version);
    indexes_.packages.push_back(normalise_wheel_name(release->name));
    return true;
  }

  void requirements(const std::string& name) {
    if (const auto made = command_.made ? command_.made(name) : std::nullopt) {
      indexes_.files = true;
      to_.note(command_.place, made->command, "the list is read as this leaves it");
      return to_.made_requirements(
          made->source, made->source.empty() ? name : made->source.lexically_normal().string(),
          made->text);
    }
    std::optional<fs::path> path = file_(name);
    if (!path) path = of_own_clone(name);
    if (!path) return leave_out("-r " + name, why_absent(name));
    indexes_.files = true;
    if (path->filename() == "pyproject.toml") return projects_.push_back(path->parent_path());
    to_.requirements(*path, path->lexically_normal().string(),
                     read_small_file(*path, size_limit::kConverted));
  }

  /// Of a build that clones the project which it lies in: the file here.
  std::optional<fs::path> of_own_clone(const std::string& name) const {
    const std::string where = in_image(name);
    for (const Clone& clone : command_.clones) {
      if (!is_of_clone(clone, where) || !is_clone_of_folder(clone, to_.folder())) continue;
      fs::path path = to_.folder() / fs::path(where).lexically_relative(clone.path);
      std::error_code unknown;
      if (!fs::is_regular_file(path, unknown)) continue;
      to_.note(command_.place, "-r " + name,
               "the build clones the project that it lies in: the file of this folder is read");
      return path;
    }
    return std::nullopt;
  }

  /// Of a list that is not here.
  std::string why_absent(const std::string& name) const {
    const std::string where = in_image(name);
    for (const Clone& clone : command_.clones) {
      if (!is_of_clone(clone, where)) continue;
      return fmt::format(
          "`{}` of the repository {} that the build clones, of which init reads nothing: bring "
          "that file into this folder, and write `requirements: [{}]`",
          where.substr(std::min(clone.path.size() + 1, where.size())),
          clone.address().substr(std::string_view("git+").size()),
          fs::path(name).filename().string());
    }
    return "no such file was found here";
  }

  const InstallCommand& command_;
  const FindFile& file_;
  Conversion& to_;
  Conversion::CommandIndexes indexes_;
  std::vector<fs::path> projects_;  ///< whose pyproject.toml `-r` names
  std::vector<std::string> extras_;
  std::vector<std::string> groups_;
  bool pre_ = false;
  bool nightly_ = false;           ///< from an index of builds of each night
  std::vector<std::string> open_;  ///< names that no version makes a pre-release
};

}  // namespace

void convert_pip_command(const InstallCommand& command, std::span<const std::string> words,
                         const FindFile& file, Conversion& to) {
  PipCommand(command, file, to).convert(words);
}

}  // namespace mlenv
