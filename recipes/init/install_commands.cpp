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
    const Words words = bare(command_.words);
    if (words.empty()) return false;
    const std::string_view program = program_of(words.front());
    const bool module = program.starts_with("python") && words.size() > 2 && words[1] == "-m";
    if (program == "apt-get" || program == "apt" || program == "aptitude") {
      convert_apt_command(command_, words.subspan(1), to_);
    } else if (is_pip(program)) {
      convert_pip_command(command_, words.subspan(1), file_, to_);
    } else if (module && words[2] == "pip") {
      convert_pip_command(command_, words.subspan(3), file_, to_);
    } else if (program == "uv" && words.size() > 1 && words[1] == "pip") {
      convert_pip_command(command_, words.subspan(2), file_, to_);
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
