#include <algorithm>
#include <array>
#include <set>

#include <fmt/core.h>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/distribution.hpp"
#include "recipes/init/container_contents.hpp"
#include "recipes/init/conversion.hpp"
#include "recipes/init/convert_folder.hpp"
#include "recipes/init/docker_words.hpp"
#include "recipes/init/host_choice.hpp"
#include "recipes/resolve/debian_control.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostStatusBytes = 64 * size_limit::kMiB;

/// Variables with which images say what they were made of, and those that every container has.
bool is_of_the_image_itself(std::string_view name) {
  constexpr std::array<std::string_view, 9> kNames = {
      "PATH",    "HOSTNAME",        "HOME",         "TERM",  "SHELL",
      "GPG_KEY", "LD_LIBRARY_PATH", "LIBRARY_PATH", "SHLVL",
  };
  constexpr std::array<std::string_view, 8> kBegins = {
      "PYTHON_VERSION", "PYTHON_SHA256", "PYTHON_PIP_", "PYTHON_GET_PIP_",
      "CUDA_VERSION",   "NVIDIA_",       "NVARCH",      "NV_"};
  return is_among(kNames, name) || is_manager_variable(name) ||
         std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

class ContainerConversion {
 public:
  ContainerConversion(const ContainerContents& from, const fs::path& folder)
      : from_(from), place_{from.shown, 0}, to_(folder, from.folder / "any") {}

  Draft convert() && {
    to_.draft.source = from_.shown;
    to_.draft.name = image_name_from(from_.shown.substr(from_.shown.find(':') + 1));
    base();
    debian_packages();
    python_environment();
    variables();
    workdir_and_command();
    to_.finish();
    return std::move(to_.draft);
  }

 private:
  std::string text(const fs::path& name, std::uint64_t limit = size_limit::kPyproject) const {
    return read_small_file_if_exists(from_.folder / name, limit).value_or("");
  }

  void base() {
    std::string release = text("etc/os-release");
    if (release.empty()) release = text("usr/lib/os-release");
    const std::string id = os_release_value(release, "ID");
    std::string found = base_of_suite(id, os_release_value(release, "VERSION_CODENAME"));
    if (found.empty()) found = base_of_number(id, os_release_value(release, "VERSION_ID"));
    if (!found.empty()) {
      to_.draft.base = found;
      return;
    }
    const std::string name = os_release_value(release, "PRETTY_NAME");
    to_.leave_out(place_, name.empty() ? "its distribution" : name,
                  "no release of Debian or Ubuntu that mlenv knows: the base is this machine's, or "
                  "what Python asks for");
  }

  void debian_packages() {
    const std::string status = text(kDpkgStatus, kMostStatusBytes);
    const std::set<std::string> makers = packages_of_nvidia(status);
    for (const std::string& name :
         asked_for_packages(status, text("var/lib/apt/extended_states", kMostStatusBytes))) {
      if (is_of_python(name)) continue;
      if (makers.contains(name)) {
        to_.leave_out_with_others(place_, name,
                                  "NVIDIA's: `cuda` and `libraries` bring CUDA along");
      } else {
        to_.system_package(place_, name);
      }
    }
  }

  /// What the recipe's `python` brings.
  static bool is_of_python(std::string_view name) {
    constexpr std::array<std::string_view, 4> kNames = {"python3", "python3-minimal", "python3-pip",
                                                        "python3-venv"};
    return is_among(kNames, name);
  }

  static std::set<std::string> packages_of_nvidia(std::string_view status) {
    std::set<std::string> names;
    each_stanza(status, [&](const ControlStanza& stanza) {
      if (stanza.field("Maintainer").find("@nvidia.com") != std::string_view::npos) {
        names.emplace(stanza.field("Package"));
      }
    });
    return names;
  }

  /// The environment whose programs are found first; else the one with the most packages.
  void python_environment() {
    const std::vector<PythonPrefix> all = python_prefixes(from_.folder);
    const PythonPrefix* chosen = nullptr;
    for (const std::string& folder : from_.path) {
      for (const PythonPrefix& one : all) {
        if (chosen == nullptr && fs::path("/") / one.prefix / "bin" == folder) chosen = &one;
      }
    }
    for (const PythonPrefix& one : all) {
      if (chosen == nullptr || (!on_path(*chosen) && one.packages > chosen->packages))
        chosen = &one;
    }
    for (const PythonPrefix& one : all) {
      if (&one == chosen || one.packages == 0) continue;
      to_.leave_out(place_,
                    fmt::format("/{} ({} Python package{})", one.prefix.string(), one.packages,
                                one.packages == 1 ? "" : "s"),
                    "the packages are those of the environment that is first in PATH");
    }
    if (chosen == nullptr) return;
    convert_environment_folder(from_.folder / chosen->prefix,
                               fmt::format("{} /{}", from_.shown, chosen->prefix.string()), to_);
  }

  bool on_path(const PythonPrefix& one) const {
    const std::string folder = (fs::path("/") / one.prefix / "bin").string();
    return std::find(from_.path.begin(), from_.path.end(), folder) != from_.path.end();
  }

  void variables() {
    for (const auto& [name, value] : from_.env) {
      if (name == "CUDA_VERSION" && to_.draft.cuda.empty()) to_.cuda_release(place_, value);
      const bool usual = (name == "LANG" || name == "LC_ALL") && value == "C.UTF-8";
      if (!usual && !is_of_the_image_itself(name)) to_.env(place_, name, value);
    }
    for (const std::string& name : from_.withheld) {
      to_.leave_out_with_others(place_, name,
                                "given when the container was started, or secret: `mlenv run --env "
                                "NAME` gives it to a run");
    }
  }

  void workdir_and_command() {
    if (is_clean_absolute_path(from_.workdir) && from_.workdir != "/") {
      to_.draft.workdir = from_.workdir;
      to_.note(place_, from_.workdir,
               "what lies there is not carried over: name your folder in `files`, or run in it");
    }
    for (const std::string& mount : from_.mounts) {
      to_.leave_out_with_others(place_, mount,
                                "mounted when the container was started: `mlenv run "
                                "--mount` does so");
    }
    if (!from_.command.empty() && !waits(from_.command)) to_.draft.command = from_.command;
  }

  /// A container that somebody works in runs a shell, or sleeps.
  static bool waits(const std::vector<std::string>& command) {
    constexpr std::array<std::string_view, 7> kIdle = {"sh",   "bash", "zsh",    "sleep",
                                                       "tail", "cat",  "python3"};
    return is_among(kIdle, fs::path(command.front()).filename().string()) && command.size() < 4;
  }

  const ContainerContents& from_;
  SourcePlace place_;
  Conversion to_;
};

}  // namespace

Draft convert_container(const ContainerContents& contents, const fs::path& folder) {
  return ContainerConversion(contents, folder).convert();
}

}  // namespace mlenv
