#include "recipes/resolve/conflict_hint.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <set>

#include <fmt/core.h>

#include "recipes/compat/cuda_libraries.hpp"
#include "recipes/distribution.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheels.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Names that the recipe and its files ask for themselves.
std::set<std::string> named_packages(const Recipe& recipe) {
  std::set<std::string> names;
  for (const Placed& one : recipe.packages) names.insert(package_of_requirement(one.text));
  for (const ListedText& one : recipe.listed.requirements) {
    names.insert(package_of_requirement(one.text));
  }
  for (const ListedText& one : recipe.listed.constraints) {
    names.insert(package_of_requirement(one.text));
  }
  // What `framework` is called among packages stands first of all.
  const std::vector<std::string> all = framework_requirements(recipe).requirements;
  if (recipe.framework && !all.empty()) names.insert(package_of_requirement(all.front()));
  return names;
}

bool is_of_library(const Recipe& recipe, const std::string& package) {
  return std::any_of(
      recipe.libraries.begin(), recipe.libraries.end(), [&](const RecipeLibrary& library) {
        const std::vector<std::string> packages = packages_of(*find_cuda_library(library.name));
        return std::find(packages.begin(), packages.end(), package) != packages.end();
      });
}

/// Demands that nobody wrote are those of a key.
void name_keys(Conflict& conflict, const Recipe& recipe, const std::set<std::string>& named) {
  static const std::regex demand("you require ((?:nvidia-|cuda-toolkit)[a-z0-9-]*)");
  for (std::string& fact : conflict.facts) {
    std::smatch found;
    if (!std::regex_search(fact, found, demand) || named.contains(found[1].str())) continue;
    const std::string key = is_of_library(recipe, found[1].str()) ? "`libraries`"
                            : recipe.cuda ? fmt::format("`cuda: \"{}\"`", recipe.cuda->text)
                                          : "";
    if (key.empty()) continue;
    fact = found.prefix().str() + key + " asks for " + found[1].str() + found.suffix().str();
  }
}

/// `3.11` of `cp311`, `2.7` of `cp27mu`; empty for tags of another kind.
std::string minor_of_tag(std::string_view tag) {
  constexpr std::string_view kMark = "cp";
  if (!tag.starts_with(kMark)) return {};
  tag.remove_prefix(kMark.size());
  std::size_t length = 0;
  while (length < tag.size() && is_digit(tag[length])) ++length;
  if (length < 2) return {};
  return fmt::format("{}.{}", tag.substr(0, 1), tag.substr(1, length - 1));
}

std::vector<std::string> quoted_words(const std::string& text) {
  static const std::regex word("`([^`]+)`");
  std::vector<std::string> words;
  for (std::sregex_iterator one(text.begin(), text.end(), word), end; one != end; ++one) {
    words.push_back((*one)[1].str());
  }
  return words;
}

/// Packages that the recipe asks for in one version.
std::vector<std::string> exact_versions(const Recipe& recipe) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& text) {
    const auto read = parse_requirement(text);
    const auto* one = std::get_if<Requirement>(&read);
    const bool exact = one != nullptr && one->specifier.starts_with("==");
    if (exact) names.push_back(one->normalised_name());
  };
  for (const Placed& one : recipe.packages) add(one.text);
  for (const ListedText& one : recipe.listed.requirements) add(one.text);
  return names;
}

struct Subject {
  const Recipe& recipe;
  std::string python;  ///< in full
  const std::set<std::string>& named;
};

/// What uv found wheels of, and for which tags.
const std::regex& found_wheels() {
  static const std::regex said(
      "only found wheels for `([^`]+)` \\(v([^)]+)\\) with the following Python ABI tags?: "
      "((?:`[^`]+`,? ?)+)");
  return said;
}

/// Wheels for other Pythons alone.
bool explain_abi(Conflict& conflict, const Subject& subject) {
  std::smatch found;
  if (!std::regex_search(conflict.told, found, found_wheels())) return false;
  const std::string name = normalise_wheel_name(found[1].str());
  const std::string wanted = fmt::format("{}=={} has no wheels with a matching Python ABI tag",
                                         found[1].str(), found[2].str());
  if (!subject.named.contains(name) || !says(conflict.told, wanted)) return false;
  const std::vector<std::string> minors = pythons_of_wheels(conflict.told, name);
  if (minors.empty()) return false;
  const std::string own = version_prefix(subject.python, 2);
  conflict.headline = fmt::format("`{}` {} has no wheel for Python {}", name, found[2].str(), own);
  std::erase_if(conflict.facts, [](const std::string& fact) { return says(fact, "ABI tag"); });
  conflict.facts.push_back(fmt::format("its wheels are for Python {}", and_joined(minors)));
  conflict.hint = other_python_hint(subject.recipe, minors, name);
  return true;
}

/// What another package asks of one that the recipe does not ask for itself.
struct Demand {
  std::string by;
  std::string requirement;
};
std::optional<Demand> demand_for(const std::string& told, const std::string& name) {
  static const std::regex said(
      "([A-Za-z0-9._-]+)(?:[<>=!~][^ ]*)? depends? on ([A-Za-z0-9._-]+)([<>=!~][^ ]*)?");
  for (std::sregex_iterator one(told.begin(), told.end(), said), end; one != end; ++one) {
    if (normalise_wheel_name((*one)[2].str()) != name) continue;
    std::string range = (*one)[3].str();
    while (range.ends_with(',') || range.ends_with('.')) range.pop_back();
    const auto read = parse_requirement(name + range);
    if (std::holds_alternative<Requirement>(read)) return Demand{(*one)[1].str(), name + range};
  }
  return std::nullopt;
}

/// Of a range, too: none of its releases has a wheel for the image's Python, whatever else is
/// asked.
bool explain_range(Conflict& conflict, const Subject& subject, const OtherPythons& others) {
  static const std::regex said(
      "([A-Za-z0-9._-]+)(?:[<>=!~][^ ]*)? ha(?:s|ve) no wheels with a matching Python ABI tag");
  std::set<std::string> seen;
  const std::string told = conflict.told;
  const std::string own = version_prefix(subject.python, 2);
  for (std::sregex_iterator one(told.begin(), told.end(), said), end; one != end; ++one) {
    const std::string name = normalise_wheel_name((*one)[1].str());
    if (!seen.insert(name).second) continue;
    const bool named = subject.named.contains(name);
    const std::optional<Demand> demand = named ? Demand{{}, name} : demand_for(told, name);
    const std::vector<std::string> minors =
        demand ? others(demand->requirement) : std::vector<std::string>();
    if (minors.empty()) continue;
    conflict.headline =
        named ? fmt::format("no release of `{}` that the recipe allows has a wheel for Python {}",
                            name, own)
              : fmt::format("`{}` asks for `{}`, which has no wheel for Python {}", demand->by,
                            demand->requirement, own);
    std::erase_if(conflict.facts, [](const std::string& fact) {
      return says(fact, "ABI tag") || fact.starts_with("you require ");
    });
    conflict.facts.push_back(fmt::format("there is a wheel for Python {}", and_joined(minors)));
    conflict.hint = other_python_hint(subject.recipe, minors, named ? name : demand->by);
    return true;
  }
  return false;
}

struct System {
  std::string_view tag;
  std::string_view name;
  std::string_view marker;
};
constexpr std::array<System, 2> kOtherSystems = {{{"win", "Windows", "sys_platform == 'win32'"},
                                                  {"macosx", "macOS", "sys_platform == 'darwin'"}}};

/// Those that the tags are of; empty where one tag is of none.
std::vector<System> systems_of(const std::vector<std::string>& tags) {
  std::vector<System> found;
  for (const System& one : kOtherSystems) {
    const auto is_its = [&](const std::string& tag) { return tag.starts_with(one.tag); };
    if (std::any_of(tags.begin(), tags.end(), is_its)) found.push_back(one);
  }
  const bool all = std::all_of(tags.begin(), tags.end(), [&](const std::string& tag) {
    return std::any_of(found.begin(), found.end(),
                       [&](const System& one) { return tag.starts_with(one.tag); });
  });
  return all ? found : std::vector<System>{};
}

/// Wheels for other systems alone.
bool explain_system(Conflict& conflict, const Subject& subject) {
  static const std::regex said(
      "Wheels are available for `([^`]+)` \\(v[^)]+\\) on the following platforms?: "
      "((?:`[^`]+`,? ?)+)");
  std::smatch found;
  if (!std::regex_search(conflict.told, found, said)) return false;
  const std::string name = normalise_wheel_name(found[1].str());
  const std::vector<std::string> tags = quoted_words(found[2].str());
  const std::vector<System> systems = systems_of(tags);
  if (systems.empty() || !subject.named.contains(name)) return false;
  std::vector<std::string> names;
  for (const System& one : systems) names.emplace_back(one.name);
  conflict.headline = fmt::format("`{}` is for {} alone", name, and_joined(names));
  std::erase_if(conflict.facts, [](const std::string& fact) { return says(fact, "matching p"); });
  conflict.facts.push_back(fmt::format("its wheels are for {}", join(tags, ", ")));
  conflict.hint = fmt::format(
      "leave it out, or write `{} ; {}`", name,
      systems.size() > 1 ? std::string_view("sys_platform != 'linux'") : systems.front().marker);
  return true;
}

/// To a Python that `fits`: by another base, else a build of uv's, else an archive.
std::string way_to_python(const Recipe& recipe,
                          const std::function<bool(std::string_view minor)>& fits) {
  for (std::string way : {bases_with_python(recipe, fits), python_to_write(recipe, fits)}) {
    if (!way.empty()) return way;
  }
  return "bring such a Python along with `sources: {python: {url: …, sha256: …}}`";
}

/// A package that needs another Python than the image has.
bool explain_python(Conflict& conflict, const Subject& subject) {
  static const std::regex said(
      "Python version \\([^)]*\\) does not satisfy Python(\\S+) and "
      "(?:all versions of )?(([A-Za-z0-9._-]+?)([<>=!~]\\S*)?) "
      "depends? on Python\\1");
  std::smatch found;
  if (!std::regex_search(conflict.told, found, said)) return false;
  const std::string wanted = found[1].str();
  const std::string package = found[2].str();
  const std::string short_form =
      fmt::format("{} needs Python {}, and the image has {}", package, wanted, subject.python);
  for (std::string& fact : conflict.facts) {
    if (says(fact, "does not satisfy Python")) fact = short_form;
  }
  if (!subject.named.contains(normalise_wheel_name(found[3].str()))) return true;
  conflict.headline = short_form;
  std::erase(conflict.facts, short_form);
  std::erase_if(conflict.facts,
                [](const std::string& fact) { return fact.starts_with("you require "); });
  const std::string other = way_to_python(
      subject.recipe, [&](std::string_view minor) { return version_satisfies(minor, wanted); });
  conflict.hint = fmt::format("{}, or allow a release of `{}` for Python {}", other, found[3].str(),
                              version_prefix(subject.python, 2));
  return true;
}

/// A release that no index has.
bool explain_release(Conflict& conflict, const Subject& subject, const NewestRelease& newest) {
  static const std::regex said(
      "there is no version of ([A-Za-z0-9._-]+)==([^ ,]+) and you require");
  std::smatch found;
  if (!std::regex_search(conflict.told, found, said)) return false;
  const std::string name = normalise_wheel_name(found[1].str());
  const std::string version = found[2].str();
  if (!subject.named.contains(name)) return false;
  conflict.headline = fmt::format("the Python indexes have no `{}` {}", name, version);
  std::erase_if(conflict.facts,
                [](const std::string& fact) { return says(fact, "there is no version of"); });
  const std::size_t plus = version.find('+');
  if (plus != std::string::npos) {
    conflict.hint = fmt::format(
        "`{}` marks a build of another index: name that under `sources: {{pypi: […]}}`, or leave "
        "it out{}",
        version.substr(plus), name == "torch" ? " and say the CUDA release with `cuda`" : "");
    return true;
  }
  const std::string other = newest(name);
  if (!other.empty()) {
    conflict.facts.push_back(fmt::format("the newest that fits the image is {}", other));
  }
  conflict.hint = "choose a release that there is; one may have been deleted since";
  return true;
}

}  // namespace

std::string and_joined(std::vector<std::string> all) {
  if (all.size() < 2) return join(all, "");
  const std::string last = std::move(all.back());
  all.pop_back();
  return join(all, ", ") + " and " + last;
}

std::vector<std::string> pythons_of_wheels(const std::string& told, const std::string& name) {
  std::smatch found;
  std::vector<std::string> minors;
  if (!std::regex_search(told, found, found_wheels()) ||
      normalise_wheel_name(found[1].str()) != name) {
    return minors;
  }
  for (const std::string& tag : quoted_words(found[3].str())) {
    std::string minor = minor_of_tag(tag);
    if (!minor.empty() && std::find(minors.begin(), minors.end(), minor) == minors.end()) {
      minors.push_back(std::move(minor));
    }
  }
  return minors;
}

std::string other_python_hint(const Recipe& recipe, const std::vector<std::string>& minors,
                              const std::string& name) {
  const std::string way = way_to_python(recipe, [&](std::string_view minor) {
    return std::find(minors.begin(), minors.end(), minor) != minors.end();
  });
  return fmt::format("{}, or choose another release of `{}`", way, name);
}

std::string held_back_hint(const Recipe& recipe, const std::string& name,
                           const std::string& version, const NewestRelease& newest) {
  if (asks_for_exact_version(recipe, name)) return {};
  const std::string other = newest(name);
  if (other.empty() || other == version) return {};
  return fmt::format(
      "something keeps `{0}` from being newer than {1}: `constraints: [\"{0}>={2}\"]` has mlenv "
      "say what",
      name, version, other);
}

std::string date_hint(const Recipe& recipe, const std::string& name) {
  constexpr std::size_t kEnough = 3;
  const std::vector<std::string> exact = exact_versions(recipe);
  const bool own = std::find(exact.begin(), exact.end(), name) != exact.end();
  if (own || exact.size() < kEnough || !recipe.steering.exclude_newer.empty()) return {};
  return "where the recipe's exact versions are of another time, `exclude-newer: YYYY-MM-DD`, a "
         "day "
         "of it, leaves out what came later";
}

bool asks_for_exact_version(const Recipe& recipe, const std::string& name) {
  const std::vector<std::string> exact = exact_versions(recipe);
  return std::find(exact.begin(), exact.end(), name) != exact.end();
}

std::string bases_with_python(const Recipe& recipe,
                              const std::function<bool(std::string_view minor)>& fits) {
  if (recipe.base_is_image) return {};
  std::vector<std::string> own;
  std::vector<std::string> others;
  for (const Distribution& one : distributions()) {
    for (const SuitePython& known : one.pythons) {
      if (!fits(known.minor)) continue;
      (one.id == recipe.distribution ? own : others)
          .push_back(recipe.python ? fmt::format("`base: {}:{}` with `python: \"{}\"`", one.id,
                                                 known.suite, known.minor)
                                   : fmt::format("`base: {}:{}` (Python {})", one.id, known.suite,
                                                 known.minor));
    }
  }
  // The newest of each.
  std::vector<std::string> named;
  if (!own.empty()) named.push_back(own.back());
  if (!others.empty()) named.push_back(others.back());
  return named.empty() ? "" : "write " + join(named, " or ");
}

void explain_conflict(Conflict& conflict, const Recipe& recipe, const std::string& python,
                      const NewestRelease& newest, const OtherPythons& others) {
  const std::set<std::string> named = named_packages(recipe);
  name_keys(conflict, recipe, named);
  const Subject subject{recipe, python, named};
  // The system first: a package for another one has old wheels for other Pythons, too.
  if (explain_system(conflict, subject) || explain_abi(conflict, subject)) return;
  if (explain_range(conflict, subject, others)) return;
  if (explain_python(conflict, subject)) return;
  explain_release(conflict, subject, newest);
}

}  // namespace mlenv
