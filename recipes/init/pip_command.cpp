#include "recipes/init/pip_command.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/init/project_install.hpp"
#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using PipSpan = std::span<const std::string>;

constexpr std::string_view kPipDoes = "not needed: mlenv does that itself";

enum class PipMeaning {
  requirements,
  editable,
  index,
  extra_index,
  links,
  extra,  ///< of the project
  group,
  nothing,    ///< of how pip works, not of what it installs
  other_key,  ///< the recipe says it with the key in `why`
  no_key,     ///< told in one line
  of_a_file,  ///< counts in a requirements file alone
};

struct PipWord {
  std::string_view name;
  PipMeaning meaning;
  bool valued = false;
  std::string_view key{};
};

constexpr std::array<PipWord, 74> kPipCommandWords = {
    {{"-r", PipMeaning::requirements, true},
     {"--requirement", PipMeaning::requirements, true},
     {"--requirements", PipMeaning::requirements, true},
     {"-e", PipMeaning::editable, true},
     {"--editable", PipMeaning::editable, true},
     {"-i", PipMeaning::index, true},
     {"--index-url", PipMeaning::index, true},
     {"--default-index", PipMeaning::index, true},
     {"--extra-index-url", PipMeaning::extra_index, true},
     {"--index", PipMeaning::extra_index, true},
     {"-f", PipMeaning::links, true},
     {"--find-links", PipMeaning::links, true},
     {"-c", PipMeaning::other_key, true, "constraints"},
     {"--constraint", PipMeaning::other_key, true, "constraints"},
     {"--constraints", PipMeaning::other_key, true, "constraints"},
     {"--build-constraint", PipMeaning::other_key, true, "build: {constraints}"},
     {"--build-constraints", PipMeaning::other_key, true, "build: {constraints}"},
     {"--overrides", PipMeaning::other_key, true, "overrides"},
     {"--override", PipMeaning::other_key, true, "overrides"},
     {"--no-binary", PipMeaning::other_key, true, "no-binary"},
     {"--only-binary", PipMeaning::other_key, true, "only-binary"},
     {"--config-settings", PipMeaning::other_key, true, "build: {config-settings}"},
     {"--config-setting", PipMeaning::other_key, true, "build: {config-settings}"},
     {"-C", PipMeaning::other_key, true, "build: {config-settings}"},
     {"--pre", PipMeaning::other_key, false, "prerelease: allow"},
     {"--prerelease", PipMeaning::other_key, true, "prerelease"},
     {"--no-deps", PipMeaning::no_key},
     {"--no-dependencies", PipMeaning::no_key},
     {"--no-build-isolation", PipMeaning::no_key},
     {"--ignore-installed", PipMeaning::no_key},
     {"-I", PipMeaning::no_key},
     {"--use-pep517", PipMeaning::no_key},
     {"--no-use-pep517", PipMeaning::no_key},
     {"--ignore-requires-python", PipMeaning::no_key},
     {"-t", PipMeaning::no_key, true},
     {"--target", PipMeaning::no_key, true},
     {"--prefix", PipMeaning::no_key, true},
     {"--root", PipMeaning::no_key, true},
     {"--global-option", PipMeaning::no_key, true},
     {"--build-option", PipMeaning::no_key, true},
     {"--require-hashes", PipMeaning::of_a_file},
     {"--extra", PipMeaning::extra, true},
     {"--group", PipMeaning::group, true},
     {"--no-index", PipMeaning::nothing},
     {"--proxy", PipMeaning::nothing, true},
     {"--src", PipMeaning::nothing, true},
     {"-w", PipMeaning::nothing, true},
     {"--wheel-dir", PipMeaning::nothing, true},
     {"--timeout", PipMeaning::nothing, true},
     {"--default-timeout", PipMeaning::nothing, true},
     {"--retries", PipMeaning::nothing, true},
     {"--cache-dir", PipMeaning::nothing, true},
     {"--progress-bar", PipMeaning::nothing, true},
     {"--root-user-action", PipMeaning::nothing, true},
     {"--index-strategy", PipMeaning::nothing, true},
     {"--python", PipMeaning::nothing, true},
     {"-p", PipMeaning::nothing, true},
     {"--torch-backend", PipMeaning::nothing, true},
     {"--link-mode", PipMeaning::nothing, true},
     {"--use-feature", PipMeaning::nothing, true},
     {"--use-deprecated", PipMeaning::nothing, true},
     {"--trusted-host", PipMeaning::nothing, true},
     {"--upgrade-strategy", PipMeaning::nothing, true},
     {"--no-cache-dir", PipMeaning::nothing},
     {"--upgrade", PipMeaning::nothing},
     {"--user", PipMeaning::nothing},
     {"--no-cache", PipMeaning::nothing},
     {"--no-input", PipMeaning::nothing},
     {"--prefer-binary", PipMeaning::nothing},
     {"--system", PipMeaning::nothing},
     {"--no-compile", PipMeaning::nothing},
     {"--compile", PipMeaning::nothing},
     {"--force-reinstall", PipMeaning::nothing},
     {"--reinstall", PipMeaning::nothing}}};
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

const PipWord* pip_option(std::string_view name) {
  for (const PipWord& one : kPipCommandWords) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

bool is_only_letters(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') &&
         word.find_first_not_of(kPipLetters, 1) == std::string_view::npos;
}

/// `pip install --upgrade pip setuptools wheel`
bool installs_only_tools(PipSpan words) {
  constexpr std::array<std::string_view, 12> kTools = {
      "pip",    "setuptools",           "wheel", "uv",         "poetry",    "pdm",
      "pipenv", "poetry-plugin-export", "hatch", "virtualenv", "pip-tools", "poetry-core"};
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
    while (!words.empty()) words = words.subspan(std::min(word(words), words.size()));
    for (const fs::path& folder : projects_) {
      install_project(command_.place, command_.text,
                      {ProjectInstall::Tool::uv, folder, false, extras_, groups_}, to_);
    }
    to_.command_indexes(command_.place, std::move(indexes_));
  }

 private:
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
      case PipMeaning::editable:
        if (!cloned(value)) to_.requirement_line(command_.place, "-e " + value, {});
        return;
      case PipMeaning::index:
        indexes_.index = value;
        return;
      case PipMeaning::extra_index:
        return to_.python_index(command_.place, value, false);
      case PipMeaning::links:
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
    if (cloned(text)) return;
    to_.python_package(command_.place, text);
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    if (one != nullptr && one->address.empty()) indexes_.packages.push_back(one->normalised_name());
  }

  /// `pip install .` in a repository that the build cloned.
  bool cloned(const std::string& word) {
    const bool is_path =
        word.starts_with('.') || word.starts_with('/') ||
        (word.find('/') != std::string::npos && word.find(':') == std::string::npos);
    const std::size_t open = word.find('[');
    const std::string extras = open == std::string::npos ? "" : word.substr(open);
    const std::string where =
        (fs::path(command_.folder) / word.substr(0, open)).lexically_normal().string();
    for (const Clone& clone : command_.clones) {
      const std::string path = clone.path;
      const bool inside = is_path && where.starts_with(path + '/');
      if (where != path && where != path + '/' && !inside) continue;
      std::string below = where.substr(std::min(path.size() + 1, where.size()));
      while (below.ends_with('/') || below.ends_with('.')) below.pop_back();
      std::string text = clone.address + (below.empty() ? "" : "#subdirectory=" + below);
      to_.python_package(command_.place, text + extras);
      return true;
    }
    return false;
  }

  void requirements(const std::string& name) {
    const std::optional<fs::path> path = file_(name);
    if (!path) return leave_out("-r " + name, "no such file was found here");
    indexes_.files = true;
    if (path->filename() == "pyproject.toml") return projects_.push_back(path->parent_path());
    to_.requirements(*path, path->lexically_normal().string(),
                     read_small_file(*path, size_limit::kConverted));
  }

  const InstallCommand& command_;
  const FindFile& file_;
  Conversion& to_;
  Conversion::CommandIndexes indexes_;
  std::vector<fs::path> projects_;  ///< whose pyproject.toml `-r` names
  std::vector<std::string> extras_;
  std::vector<std::string> groups_;
};

}  // namespace

void convert_pip_command(const InstallCommand& command, std::span<const std::string> words,
                         const FindFile& file, Conversion& to) {
  PipCommand(command, file, to).convert(words);
}

}  // namespace mlenv
