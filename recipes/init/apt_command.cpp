#include "recipes/init/apt_command.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "recipes/distribution.hpp"
#include "recipes/foreign_packages.hpp"
#include "recipes/platforms.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAptDoes = "not needed: mlenv does that itself";

/// Where a build adds an archive, what it installs next is mostly of that; these are everybody's.
constexpr std::array<std::string_view, 38> kUsualPackages = {"apt-transport-https",
                                                             "apt-utils",
                                                             "bash",
                                                             "build-essential",
                                                             "bzip2",
                                                             "ca-certificates",
                                                             "cmake",
                                                             "curl",
                                                             "ffmpeg",
                                                             "g++",
                                                             "gcc",
                                                             "git",
                                                             "git-lfs",
                                                             "gnupg",
                                                             "gnupg2",
                                                             "htop",
                                                             "jq",
                                                             "libgl1",
                                                             "libgl1-mesa-glx",
                                                             "libgomp1",
                                                             "libsm6",
                                                             "libxext6",
                                                             "libxrender1",
                                                             "lsb-release",
                                                             "make",
                                                             "nano",
                                                             "nodejs",
                                                             "npm",
                                                             "openssh-client",
                                                             "openssh-server",
                                                             "pkg-config",
                                                             "software-properties-common",
                                                             "sudo",
                                                             "tmux",
                                                             "unzip",
                                                             "vim",
                                                             "wget",
                                                             "zip"};

bool is_usual(std::string_view package) {
  return is_among(kUsualPackages, package) || package.ends_with("-dev") ||
         package.starts_with("python3-") || package == "python3" || package.starts_with("lib");
}

/// `3.9` and `-dev` of `python3.9-dev`.
struct PythonPackage {
  std::string version;
  std::string_view rest;
};
std::optional<PythonPackage> python_package_of(std::string_view name) {
  constexpr std::string_view kBegin = "python3.";
  if (!name.starts_with(kBegin)) return std::nullopt;
  const std::size_t end = std::min(name.find('-'), name.size());
  const std::string_view minor = name.substr(kBegin.size(), end - kBegin.size());
  if (minor.empty() || !all_digits(minor)) return std::nullopt;
  return PythonPackage{fmt::format("3.{}", minor), name.substr(end)};
}

struct TargetRelease {
  std::string suite;
  bool took_next = false;
};
/// `-t X`, `-tX`, `-t=X`, `-yt X`, `--target-release X`, `--default-release=X`; nullopt: another
/// word.
std::optional<TargetRelease> target_release(std::string_view word, const std::string& next) {
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

class AptCommand {
 public:
  AptCommand(const InstallCommand& command, Conversion& to) : command_(command), to_(to) {}

  void convert(std::span<const std::string> words) {
    constexpr std::array<std::string_view, 9> kTidy = {"update",       "upgrade",   "dist-upgrade",
                                                       "full-upgrade", "clean",     "autoclean",
                                                       "autoremove",   "build-dep", ""};
    const std::vector<std::string> rest = without_options(words);
    const std::string verb = rest.empty() ? "" : rest.front();
    if (is_among(kTidy, verb)) return leave_out(command_.text, kAptDoes);
    if (verb != "install" && verb != "reinstall") {
      return leave_out(
          command_.text,
          "only what a package manager installs has a key; the rest can be a step of `run`");
    }
    for (const std::string& one : std::span(rest).subspan(1)) package(one);
  }

 private:
  void leave_out(std::string_view text, std::string_view why) {
    to_.leave_out(command_.place, text, why);
  }

  std::vector<std::string> without_options(std::span<const std::string> words) {
    constexpr std::array<std::string_view, 4> kValued = {"-o", "-c", "--option", "--config-file"};
    std::vector<std::string> rest;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string next = i + 1 < words.size() ? words[i + 1] : "";
      if (const auto release = target_release(words[i], next)) {
        suite_ = release->suite;
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
    return rest;
  }

  void package(std::string package) {
    const std::string name(parse_debian_wish(package).name);
    if (const auto python = python_package_of(name)) return python_beside(package, *python);
    if (command_.foreign && !is_usual(name) && why_foreign_package(name).empty()) {
      return to_.leave_out_with_others(command_.place, package, kOfAnotherMaker);
    }
    if (name == "cuda" || name.starts_with("cuda-")) of_cuda_archive(name);
    const bool chosen = package.find_first_of("=/") != std::string::npos;
    const std::string_view machine = parse_debian_wish(package).architecture;
    if (!machine.empty() && !chosen && !is_known_platform(fmt::format("linux/{}", machine))) {
      leave_out(package, "mlenv makes no images of that architecture: the name alone is kept");
      package.resize(package.find(':'));
    }
    // `ffmpeg=7:*`: any of a release of which a build's base had one.
    if (const std::size_t equal = package.find('='); package.find('*', equal) < package.size()) {
      to_.note(command_.place, package, "the version is the one that the base's archive has");
      package.resize(equal);
    }
    if (!suite_.empty() && !chosen) package += '/' + suite_;
    to_.system_package(command_.place, package);
  }

  /// `cuda-toolkit-12-4`, `cuda-12-4`: which release, and whether nvcc is in it.
  void of_cuda_archive(std::string_view name) {
    const std::size_t minor = name.rfind('-');
    const std::size_t major = minor == 0 ? minor : name.rfind('-', minor - 1);
    const std::string_view release = major < minor ? name.substr(major + 1) : "";
    const std::size_t dash = release.find('-');
    const bool numbers = dash != std::string_view::npos && all_digits(release.substr(0, dash)) &&
                         all_digits(release.substr(dash + 1));
    if (numbers && to_.draft.cuda.empty()) {
      to_.cuda_release(command_.place,
                       fmt::format("{}.{}", release.substr(0, dash), release.substr(dash + 1)));
    }
    const bool whole = name == "cuda" || (numbers && major == std::string_view("cuda").size());
    if (whole || says(name, "toolkit") || says(name, "nvcc") || says(name, "compiler")) {
      to_.cuda_compiler(command_.place, name);
    }
  }

  /// A Python by its number is the recipe's, whose base may be another for it.
  void python_beside(const std::string& package, const PythonPackage& python) {
    to_.python_version(command_.place, python.version);
    if (python.rest == "-dev") return to_.system_package(command_.place, "python3-dev");
    if (python.rest.empty()) return;
    to_.leave_out_with_others(command_.place, package, "parts of Python that the image has anyway");
  }

  const InstallCommand& command_;
  Conversion& to_;
  std::string suite_;
};

}  // namespace

void convert_apt_command(const InstallCommand& command, std::span<const std::string> words,
                         Conversion& to) {
  AptCommand(command, to).convert(words);
}

}  // namespace mlenv
