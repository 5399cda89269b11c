// Commands of a build that install packages.
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/core.h>

#include "recipes/init/apt_command.hpp"
#include "recipes/init/converters.hpp"
#include "recipes/init/pip_command.hpp"
#include "recipes/init/run_prefix.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Words = std::span<const std::string>;

constexpr std::string_view kDone = "not needed: mlenv does that itself";
/// Without what only changes how it is run.
Words bare(Words words) { return words.subspan(prefix_length(words)); }

std::string_view program_of(std::string_view word) { return word.substr(word.rfind('/') + 1); }

class Install {
 public:
  Install(const InstallCommand& command, const FindFile& file, Conversion& to)
      : command_(command), file_(file), to_(to) {}

  bool convert() {
    Words words = bare(command_.words);
    if (words.empty()) return false;
    constexpr std::array<std::string_view, 5> kModules = {"poetry", "pipenv", "pdm", "uv", "pipx"};
    if (program_of(words.front()).starts_with("python") && words.size() > 3 && words[1] == "-m" &&
        is_among(kModules, words[2])) {
      words = words.subspan(2);
    }
    const std::string_view program = program_of(words.front());
    const bool module = program.starts_with("python") && words.size() > 2 && words[1] == "-m";
    if (program == "apt-get" || program == "apt" || program == "aptitude") {
      convert_apt_command(command_, words.subspan(1), to_);
    } else if (is_pip(program)) {
      convert_pip_command(command_, words.subspan(1), file_, to_);
    } else if (is_own_setup(words)) {
      const std::vector<std::string> here = {"install", "."};
      convert_pip_command(command_, here, file_, to_);
    } else if (module && words[2] == "pip") {
      convert_pip_command(command_, words.subspan(3), file_, to_);
    } else if (program == "uv" && words.size() > 1 && words[1] == "pip") {
      convert_pip_command(command_, words.subspan(2), file_, to_);
    } else if (program == "pipx") {
      pipx(words);
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
  /// `pipx install poetry`: a tool in an environment of its own, which is the image's here.
  void pipx(Words words) {
    if (words.size() < 3 || words[1] != "install") return leave_out(kDone);
    std::vector<std::string> plain = {"install"};
    for (const std::string& word : words.subspan(2)) {
      if (!word.starts_with('-')) plain.push_back(word);
    }
    convert_pip_command(command_, plain, file_, to_);
  }

  static bool is_pip(std::string_view program) {
    // OpenMIM's `mim install` is pip with an index of OpenMMLab's builds.
    return program == "pip" || program == "pip3" || program.starts_with("pip3.") ||
           program == "mim";
  }

  /// `python setup.py install`, `… build develop`: what pip would do in that folder.
  static bool is_own_setup(Words words) {
    if (words.size() < 3 || !program_of(words[0]).starts_with("python") || words[1] != "setup.py") {
      return false;
    }
    return std::any_of(words.begin() + 2, words.end(), [](const std::string& word) {
      return word == "install" || word == "develop";
    });
  }

  void leave_out(std::string_view why) { to_.leave_out(command_.place, command_.text, why); }

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
    constexpr std::array<std::string_view, 9> kLeftovers = {
        "/var/lib/apt/lists", "/var/cache/", "/var/log/",    "/var/tmp/",     "/tmp/",
        "/root/.cache",       "~/.cache",    "$HOME/.cache", "/usr/share/doc"};
    return std::all_of(words.begin() + 1, words.end(), [&](const std::string& word) {
      return word.starts_with('-') ||
             std::any_of(kLeftovers.begin(), kLeftovers.end(),
                         [&](std::string_view place) { return word.starts_with(place); });
    });
  }

  const InstallCommand& command_;
  const FindFile& file_;
  Conversion& to_;
};

}  // namespace

bool convert_install(const InstallCommand& command, const FindFile& file, Conversion& to) {
  return Install(command, file, to).convert();
}

}  // namespace mlenv
