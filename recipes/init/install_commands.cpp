// Commands of a build that install packages.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/distribution.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/run_prefix.hpp"
#include "recipes/platforms.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Words = std::span<const std::string>;

constexpr std::string_view kDone = "not needed: mlenv does that itself";
constexpr std::string_view kOnlyInstalls =
    "only what a package manager installs has a key; the rest can be a step of `run`";

/// Without what only changes how it is run.
Words bare(Words words) { return words.subspan(prefix_length(words)); }

std::string_view program_of(std::string_view word) { return word.substr(word.rfind('/') + 1); }

class Install {
 public:
  Install(const InstallCommand& command, const FindFile& file, Conversion& to)
      : command_(command), file_(file), to_(to) {}

  bool convert() {
    const Words words = bare(command_.words);
    if (words.empty()) return false;
    const std::string_view program = program_of(words.front());
    const bool module = program.starts_with("python") && words.size() > 2 && words[1] == "-m";
    if (program == "apt-get" || program == "apt" || program == "aptitude") {
      apt(words.subspan(1));
    } else if (is_pip(program)) {
      pip(words.subspan(1));
    } else if (module && words[2] == "pip") {
      pip(words.subspan(3));
    } else if (program == "uv" && words.size() > 1 && words[1] == "pip") {
      pip(words.subspan(2));
    } else if (convert_project_command(command_, words, file_, to_)) {
      return true;
    } else if (only_tidies(words)) {
      leave_out(kDone);
    } else {
      return false;
    }
    return true;
  }

 private:
  static bool is_pip(std::string_view program) {
    return program == "pip" || program == "pip3" || program.starts_with("pip3.");
  }

  void leave_out(std::string_view why) { to_.leave_out(command_.place, command_.text, why); }
  void leave_out(const std::string& word, std::string_view why) {
    to_.leave_out(command_.place, word, why);
  }

  /// `set -e`, and removing what package managers leave behind.
  static bool only_tidies(Words words) {
    const std::string_view program = program_of(words.front());
    if (program == "set" || program == "true" || program == "ldconfig") return true;
    if (program == "virtualenv") return true;
    if (program.starts_with("python") && words.size() > 2 && words[1] == "-m") {
      return words[2] == "venv" || words[2] == "virtualenv" || words[2] == "ensurepip";
    }
    if (program == "source" || program == ".") {  // an environment of a tool's
      return words.size() > 1 && (says(words[1], "activate") || says(words[1], "bashrc") ||
                                  says(words[1], "conda") || says(words[1], "profile"));
    }
    if (program != "rm") return false;
    constexpr std::array<std::string_view, 5> kLeftovers = {
        "/var/lib/apt/lists", "/var/cache/apt", "/var/cache/debconf", "/root/.cache", "/tmp/"};
    return std::all_of(words.begin() + 1, words.end(), [&](const std::string& word) {
      return word.starts_with('-') ||
             std::any_of(kLeftovers.begin(), kLeftovers.end(),
                         [&](std::string_view place) { return word.starts_with(place); });
    });
  }

  struct TargetRelease {
    std::string suite;
    bool took_next = false;
  };
  /// `-t X`, `-tX`, `-t=X`, `-yt X`, `--target-release X`, `--default-release=X`; nullopt: another
  /// word.
  static std::optional<TargetRelease> target_release(std::string_view word,
                                                     const std::string& next) {
    for (const std::string_view name : {"--target-release", "--default-release"}) {
      if (word == name) return TargetRelease{next, true};
      if (word.starts_with(name) && word.substr(name.size()).starts_with('=')) {
        return TargetRelease{std::string(word.substr(name.size() + 1)), false};
      }
    }
    if (!word.starts_with('-') || word.starts_with("--")) return std::nullopt;
    // Behind letters that stand alone.
    const std::size_t at = word.find_first_not_of("yqmfdsuVb", 1);
    if (at == std::string_view::npos || word[at] != 't') return std::nullopt;
    std::string_view suite = word.substr(at + 1);
    if (suite.empty()) return TargetRelease{next, true};
    if (suite.starts_with('=')) suite.remove_prefix(1);
    return TargetRelease{std::string(suite), false};
  }

  void apt(Words words) {
    constexpr std::array<std::string_view, 4> kValued = {"-o", "-c", "--option", "--config-file"};
    constexpr std::array<std::string_view, 8> kTidy = {"update",       "upgrade", "dist-upgrade",
                                                       "full-upgrade", "clean",   "autoclean",
                                                       "autoremove",   ""};
    std::vector<std::string> rest;
    std::string suite;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string next = i + 1 < words.size() ? words[i + 1] : "";
      if (const auto release = target_release(words[i], next)) {
        suite = release->suite;
        if (release->took_next) ++i;
      } else if (is_among(kValued, words[i])) {
        if (words[i] != "-o" && words[i] != "--option" && i + 1 < words.size()) {
          leave_out(words[i] + ' ' + words[i + 1], "settings of apt's are not taken over");
        }
        ++i;
      } else if (!words[i].starts_with('-')) {
        rest.push_back(words[i]);
      }
    }
    const std::string verb = rest.empty() ? "" : rest.front();
    if (is_among(kTidy, verb)) return leave_out(kDone);
    if (verb != "install") return leave_out(kOnlyInstalls);
    for (std::string package : std::span(rest).subspan(1)) {
      const bool chosen = package.find_first_of("=/") != std::string::npos;
      const std::string_view machine = parse_debian_wish(package).architecture;
      if (!machine.empty() && !chosen && !is_known_platform(fmt::format("linux/{}", machine))) {
        leave_out(package, "mlenv makes no images of that architecture: the name alone is kept");
        package.resize(package.find(':'));
      }
      if (!suite.empty() && !chosen) package += '/' + suite;
      to_.system_package(command_.place, package);
    }
  }

  void pip(Words words) {
    while (!words.empty() && words.front().starts_with('-')) words = words.subspan(1);
    if (words.empty()) return leave_out(kOnlyInstalls);
    const std::string& verb = words.front();
    if (verb == "cache" || verb == "config" || verb == "check" || verb == "list" ||
        verb == "freeze" || verb == "download" || verb == "compile") {
      return leave_out(kDone);
    }
    if (verb == "sync" && words.size() > 1) return sync(words.subspan(1));
    if (verb != "install") return leave_out(kOnlyInstalls);
    words = words.subspan(1);
    if (only_tools(words)) return leave_out(kDone);
    for (std::size_t i = 0; i < words.size();) i += pip_word(words.subspan(i));
  }

  /// `uv pip sync requirements.txt`
  void sync(Words words) {
    for (const std::string& word : words) {
      if (!word.starts_with('-')) requirements(word);
    }
  }

  /// `pip install --upgrade pip setuptools wheel`
  static bool only_tools(Words words) {
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

  /// How many words it took.
  std::size_t pip_word(Words words) {
    constexpr std::array<std::string_view, 15> kHarmless = {
        "--no-cache-dir", "--upgrade",    "-U",
        "--user",         "--quiet",      "-q",
        "--no-cache",     "-qq",          "--no-input",
        "--verbose",      "-v",           "--prefer-binary",
        "--system",       "--no-compile", "--force-reinstall"};
    constexpr std::array<std::string_view, 6> kHarmlessStarts = {
        "--disable-pip-version-check", "--break-system-packages", "--root-user-action",
        "--no-warn-script-location",   "--progress-bar=",         "--compile"};
    constexpr std::array<std::string_view, 6> kHarmlessValued = {
        "--timeout",   "--default-timeout", "--retries",
        "--cache-dir", "--progress-bar",    "--root-user-action"};
    const std::string& word = words.front();
    if (!word.starts_with('-')) {
      if (!cloned(word)) to_.python_package(command_.place, word);
      return 1;
    }
    if (is_among(kHarmless, word)) return 1;
    if (is_among(kHarmlessValued, word)) return std::min<std::size_t>(2, words.size());
    for (const std::string_view start : kHarmlessStarts) {
      if (word.starts_with(start)) return 1;
    }
    for (const std::string_view start :
         {"--timeout=", "--default-timeout=", "--retries=", "--cache-dir="}) {
      if (word.starts_with(start)) return 1;
    }
    return pip_option(words);
  }

  // NOLINTNEXTLINE(readability-function-cognitive-complexity, readability-function-size)
  std::size_t pip_option(Words words) {
    constexpr std::array<std::string_view, 16> kValued = {"-r",
                                                          "--requirement",
                                                          "-c",
                                                          "--constraint",
                                                          "-i",
                                                          "--index-url",
                                                          "--extra-index-url",
                                                          "-f",
                                                          "--find-links",
                                                          "-e",
                                                          "--editable",
                                                          "-t",
                                                          "--target",
                                                          "--trusted-host",
                                                          "--only-binary",
                                                          "--no-binary"};
    std::string name = words.front().substr(0, words.front().find('='));
    std::string value;
    std::size_t took = 1;
    if (name.size() < words.front().size()) {
      value = words.front().substr(name.size() + 1);
    } else if (is_among(kValued, name) && words.size() > 1) {
      value = words[1];
      took = 2;
    } else if (!name.starts_with("--") && name.size() > 2 && name[1] == 'r') {
      value = name.substr(2);
      name = "-r";
    }
    if (name == "-r" || name == "--requirement") {
      requirements(value);
    } else if (name == "-i" || name == "--index-url") {
      to_.python_index(command_.place, value, true);
    } else if (name == "--extra-index-url") {
      to_.python_index(command_.place, value, false);
    } else if ((name == "-e" || name == "--editable") && cloned(value)) {
      return took;
    } else if (name == "-e" || name == "--editable") {
      to_.requirement_line(command_.place, "-e " + value, {});
    } else if (name == "--no-deps" || name == "--no-build-isolation" ||
               name == "--ignore-installed" || name == "-I" || name == "--no-dependencies" ||
               name == "--use-pep517" || name == "--no-use-pep517" ||
               name == "--ignore-requires-python") {
      to_.leave_out_with_others(command_.place, "pip install " + name,
                                "options of pip that no key stands for");
    } else if (name == "--index-strategy" || name == "--python" || name == "-p" ||
               name == "--torch-backend" || name == "--link-mode") {
      return name.size() == words.front().size() ? std::min<std::size_t>(2, words.size()) : 1;
    } else if (name == "-c" || name == "--constraint") {
      leave_out("pip install " + name + (value.empty() ? "" : " " + value),
                "the recipe says it with `constraints`");
    } else if (name == "--pre") {
      leave_out("pip install --pre", "the recipe says it with `prerelease: allow`");
    } else if (name == "--no-binary" || name == "--only-binary" || name == "--prefer-binary" ||
               name == "--config-settings") {
      const std::string key =
          name == "--config-settings" ? "build: {config-settings}" : name.substr(2);
      leave_out("pip install " + name + (value.empty() ? "" : " " + value),
                fmt::format("the recipe says it with `{}`", key));
    } else if (name == "--require-hashes") {
      leave_out("pip install " + name,
                "it counts where it stands in a requirements file that `requirements` names");
    } else {
      const std::string shown = value.empty() ? name : name + ' ' + value;
      leave_out("pip install " + shown, "an option of pip that no key stands for");
    }
    return took;
  }

  /// `pip install .` in a repository that the build cloned.
  bool cloned(const std::string& word) {
    const bool is_path =
        word.starts_with('.') || word.starts_with('/') ||
        (word.find('/') != std::string::npos && word.find(':') == std::string::npos);
    if (!is_path) return false;
    const std::size_t open = word.find('[');
    const std::string extras = open == std::string::npos ? "" : word.substr(open);
    const std::string where =
        (fs::path(command_.folder) / word.substr(0, open)).lexically_normal().string();
    for (const Clone& clone : command_.clones) {
      const std::string path = clone.path;
      if (where != path && where != path + '/' && !where.starts_with(path + '/')) continue;
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
    to_.requirements(*path, path->lexically_normal().string(),
                     read_small_file(*path, size_limit::kConverted));
  }

  const InstallCommand& command_;
  const FindFile& file_;
  Conversion& to_;
};

}  // namespace

std::optional<Clone> clone_of(std::span<const std::string> words, const std::string& folder) {
  if (words.size() < 3 || program_of(words[0]) != "git" || words[1] != "clone") return std::nullopt;
  constexpr std::array<std::string_view, 8> kValues = {"-b",     "--branch", "--depth", "-c",
                                                       "--jobs", "-j",       "-o",      "--origin"};
  std::string reference;
  std::vector<std::string> rest;
  for (std::size_t i = 2; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.starts_with("--branch=")) reference = word.substr(9);
    if (!word.starts_with('-')) {
      rest.push_back(word);
    } else if (is_among(kValues, word) && i + 1 < words.size()) {
      ++i;
      if (word == "-b" || word == "--branch") reference = words[i];
    }
  }
  if (rest.empty() || rest[0].find("://") == std::string::npos) return std::nullopt;
  std::string name = rest.size() > 1 ? rest[1] : rest[0].substr(rest[0].rfind('/') + 1);
  if (name.ends_with(".git")) name.resize(name.size() - 4);
  Clone clone{(fs::path(folder.empty() ? "/" : folder) / name).lexically_normal().string(),
              "git+" + rest[0] + (reference.empty() ? "" : '@' + reference)};
  while (clone.path.size() > 1 && clone.path.ends_with('/')) clone.path.pop_back();
  return clone;
}

bool convert_install(const InstallCommand& command, const FindFile& file, Conversion& to) {
  return Install(command, file, to).convert();
}

}  // namespace mlenv
