#include <algorithm>
#include <array>
#include <vector>

#include <fmt/core.h>

#include "builder/build_hint_parts.hpp"
#include "recipes/module_distributions.hpp"
#include "recipes/text.hpp"

namespace mlenv::hints {
namespace {

Hint git_version(const FailedBuild& build) {
  if (!says(build, "unable to detect version")) return std::nullopt;
  return "its version comes from git, and a build sees no `.git`: give its setuptools-scm a "
         "`fallback_version`, or write the version down";
}

/// setuptools before 70.1 has wheels made by `wheel`, whose `bdist_wheel` went with 0.46; one that
/// takes requirements and versions of any form needs a `wheel` that does, too.
constexpr std::string_view kWheelWithCommand = "wheel<0.46";
constexpr std::string_view kWheelOfAnyForm = "wheel<0.40";

struct OlderTool {
  std::string_view said;
  std::string_view what;
  std::string_view constraint;
  std::string_view wheel{};  ///< that goes with such a setuptools
};
constexpr auto kOlderTools = std::to_array<OlderTool>({
    {"use_2to3 is invalid", "`use_2to3` went with setuptools 58", "setuptools<58", kWheelOfAnyForm},
    {"'extras_require' must be a dictionary",
     "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66",
     kWheelOfAnyForm},
    {"'install_requires' must be a string",
     "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66",
     kWheelOfAnyForm},
    {"'python_requires' must be a string",
     "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66",
     kWheelOfAnyForm},
    {"'tests_require' must be a string",
     "its requirements are none by PEP 508, which setuptools asks since 67", "setuptools<66",
     kWheelOfAnyForm},
    {"packaging.version.InvalidVersion",
     "its version is none by PEP 440, which setuptools asks since 66", "setuptools<66",
     kWheelOfAnyForm},
    {"extern.packaging.version.InvalidVersion",
     "its version is none by PEP 440, which setuptools asks since 66", "setuptools<66",
     kWheelOfAnyForm},
    {"packaging.requirements.InvalidRequirement",
     "its requirements are none by PEP 508, which wheel asks since 0.40", "setuptools<66",
     kWheelOfAnyForm},
    {"No module named 'pkg_resources'", "`pkg_resources` went with setuptools 82", "setuptools<81"},
    {"from 'pkg_resources'", "it takes from `pkg_resources` what that no longer has",
     "setuptools<70", kWheelWithCommand},
    {"module 'pkg_resources' has no attribute",
     "it takes from `pkg_resources` what that no longer has", "setuptools<70", kWheelWithCommand},
    {"argument 'dry_run'", "distutils' `dry_run` went with setuptools 81", "setuptools<81"},
    {"attribute 'dry_run'", "distutils' `dry_run` went with setuptools 81", "setuptools<81"},
    {"No module named 'setuptools.command.test'", "`setup.py test` went with setuptools 72",
     "setuptools<72"},
    {"No module named 'distutils.msvccompiler'", "`distutils.msvccompiler` went with setuptools 74",
     "setuptools<74"},
    {"cannot import name 'msvccompiler'", "`distutils.msvccompiler` went with setuptools 74",
     "setuptools<74"},
    {"from 'setuptools.command.", "it takes from setuptools what that no longer has",
     "setuptools<72"},
    {"No module named 'setuptools._distutils", "it takes from setuptools what is its own matter",
     "setuptools<60", kWheelWithCommand},
    {"No module named 'wheel.bdist_wheel'", "`wheel.bdist_wheel` went with wheel 0.46",
     kWheelWithCommand},
    {"invalid command 'bdist_wheel'", "wheel's `bdist_wheel` went with wheel 0.46",
     kWheelWithCommand},
});

/// What newer releases of build tools no longer take.
Hint older_tool(const FailedBuild& build) {
  for (const OlderTool& one : kOlderTools) {
    if (!says(build, one.said)) continue;
    std::vector<std::string_view> wanted{one.constraint};
    if (!one.wheel.empty()) wanted.push_back(one.wheel);
    const std::string_view tool = one.constraint.substr(0, one.constraint.find('<'));
    if (build.tools.empty() || has_tool(build, tool)) {
      return fmt::format("{}: {}", one.what, constrained(build, wanted));
    }
    std::vector<std::string> quoted;
    for (const std::string_view each : wanted) quoted.push_back(fmt::format("\"{}\"", each));
    return fmt::format("{}: {}", one.what, requiring(build, join(quoted, ", ")));
  }
  return std::nullopt;
}

/// setuptools' own distutils against Debian's changes of Python's.
Hint install_layout(const FailedBuild& build) {
  if (!says(build, "install_layout")) return std::nullopt;
  return "that setuptools does not go with Debian's Python: " +
         with_variable(build, "SETUPTOOLS_USE_DISTUTILS", "stdlib") + ", or a newer setuptools";
}

Hint python_2(const FailedBuild& build) {
  if (!says_any(build, {"Missing parentheses in call to 'print'", "except Exception, ",
                        "No module named 'ConfigParser'", "No module named 'urllib2'",
                        "No module named '__builtin__'", "name 'execfile' is not defined"})) {
    return std::nullopt;
  }
  return "it was written for Python 2: choose a newer version of it, or leave it out";
}

Hint other_python(const FailedBuild& build) {
  if (!says_any(build, {"Cannot install on Python version", "only supports Python",
                        "Unsupported Python version", "unsupported Python version",
                        "Python version is not supported"})) {
    return std::nullopt;
  }
  return "it is for other Pythons than this one: choose another version of it, or another `python`";
}

/// A package of a name that people mistake for another's.
Hint placeholder(const FailedBuild& build) {
  if (!says(build, "SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL")) return std::nullopt;
  return "write `scikit-learn`, of which `sklearn` is but the module; where another package asks "
         "for it, " +
         with_variable(build, "SKLEARN_ALLOW_DEPRECATED_SKLEARN_PACKAGE_INSTALL", "True");
}

/// Names in quotes, as Python says them, or as `python -m` does; of several the last that is no
/// warning, with which builds go on.
std::string missing_module(const FailedBuild& build) {
  constexpr std::string_view kSays = "No module named ";
  const std::vector<std::string_view> lines = split(build.said, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::size_t at = line->find(kSays);
    if (at == std::string_view::npos || line->find("Warning") != std::string_view::npos) continue;
    std::string_view name = line->substr(at + kSays.size());
    if (name.starts_with('\'') || name.starts_with('"')) name.remove_prefix(1);
    return std::string(name.substr(0, std::min(name.find_first_of("'\" \r;("), name.size())));
  }
  return {};
}

Hint undeclared_module(const FailedBuild& build) {
  const std::string module = missing_module(build);
  if (module.empty()) return std::nullopt;
  if (module.starts_with("numpy.distutils") && has_tool(build, "numpy")) {
    return "`numpy.distutils` went with Python 3.12: choose a newer version of it, or an older "
           "`python`";
  }
  if (module == "distutils" || module.starts_with("distutils.")) {
    return fmt::format("Python 3.12 has no `distutils`, setuptools brings one: {}",
                       requiring(build, "setuptools"));
  }
  if (module == "tkinter" || module == "_tkinter") {
    return "Debian keeps `tkinter` apart: " + on_system("python3-tk");
  }
  const std::string_view dropped = dropped_from_python(module);
  if (!dropped.empty()) {
    return fmt::format(
        "Python {} has no `{}` any more: choose a newer version of it, or an older `python`",
        dropped, module);
  }
  const std::string_view distribution = distribution_of_module(module);
  if (!distribution.empty()) {
    return fmt::format("its build uses `{}` and does not declare it: {}", module,
                       requiring(build, distribution));
  }
  return fmt::format(
      "its build uses `{}` and does not declare it: name the package that has it, as in {}", module,
      requiring(build, "numpy"));
}

}  // namespace

Hint of_python(const FailedBuild& build) {
  for (const auto find : {git_version, placeholder, older_tool, install_layout, python_2,
                          other_python, undeclared_module}) {
    if (Hint hint = find(build)) return hint;
  }
  return std::nullopt;
}

}  // namespace mlenv::hints
