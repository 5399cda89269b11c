#include "recipes/resolve/wheel_failures.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/distribution.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/conflict_hint.hpp"
#include "recipes/resolve/direct_wheels.hpp"
#include "recipes/resolve/uv_steering.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/resolve/wheel_conflict.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr int kMostAbsent = 20;  ///< packages that are looked for one by one

/// Of all releases that a base can be made of, the oldest first.
std::vector<std::string> pythons_of_bases() {
  std::vector<std::string> minors;
  for (const Distribution& one : distributions()) {
    for (const SuitePython& known : one.pythons) minors.emplace_back(known.minor);
  }
  std::sort(minors.begin(), minors.end(), is_older);
  minors.erase(std::unique(minors.begin(), minors.end()), minors.end());
  return minors;
}

}  // namespace

Conflict WheelFailures::explained(Conflict conflict) const {
  const WheelRequest& request = search_.request();
  if (search_.is_requested(conflict.absent)) {
    Conflict absent = absent_packages(search_.recipe(), absent_names(conflict.absent));
    absent.absent = std::move(conflict.absent);
    absent.told = std::move(conflict.told);
    return absent;
  }
  std::vector<std::string> names;
  if (request.direct != nullptr) {
    const std::vector<std::string> lines = direct_facts(*request.direct, conflict);
    conflict.facts.insert(conflict.facts.begin(), lines.begin(), lines.end());
    for (const BuiltRelease& one : *request.direct) names.push_back(one.wheel.name);
  }
  show_requirements(conflict, search_.recipe(), names);
  explain_conflict(
      conflict, search_.recipe(), request.python,
      [&](const std::string& name) { return newest_release(name); },
      [&](const std::string& requirement) { return other_pythons(requirement); });
  for (std::string& fact : steering_facts(search_.recipe().steering, conflict)) {
    conflict.facts.push_back(std::move(fact));
  }
  return conflict;
}

std::string WheelFailures::newest_release(const std::string& name) const {
  UvQuestion question;
  question.requirements = {name};
  question.no_dependencies = true;
  const UvAnswer answer = search_.ask(question);
  const auto* packages = std::get_if<PylockPackages>(&answer);
  return packages == nullptr || packages->empty() ? std::string{} : packages->front().version;
}

/// uv names one package that no index has; the rest of the recipe's own are asked for alone.
std::vector<std::string> WheelFailures::absent_names(const std::string& first) const {
  std::vector<std::string> names = {first};
  UvQuestion question = search_.question;
  question.no_dependencies = true;
  for (int round = 0; round < kMostAbsent; ++round) {
    std::erase_if(question.requirements, [&](const std::string& text) {
      const auto read = parse_requirement(text);
      const auto* one = std::get_if<Requirement>(&read);
      return one == nullptr || one->normalised_name() == names.back();
    });
    if (question.requirements.empty()) break;
    const UvAnswer answer = search_.ask(question);
    const auto* conflict = std::get_if<Conflict>(&answer);
    if (conflict == nullptr || !search_.is_requested(conflict->absent)) break;
    names.push_back(conflict->absent);
  }
  return names;
}

Error WheelFailures::of_build(const Error& error, const SourceRelease& source) const {
  const Recipe& recipe = search_.recipe();
  const std::vector<std::string> minors = older_pythons(source);
  if (!minors.empty()) {
    std::string hint = other_python_hint(recipe, minors, source.name);
    if (!error.hint().empty()) {
      hint += fmt::format("; to build it all the same: {}", error.hint());
    }
    return error.with_hint(std::move(hint))
        .because(fmt::format("`{}` {} is older than Python {}: its wheels are for Python {}",
                             source.name, source.version,
                             version_prefix(search_.request().python, 2), and_joined(minors)));
  }
  std::vector<std::string> hints = {
      held_back_hint(recipe, source.name, source.version,
                     [&](const std::string& name) { return newest_release(name); }),
      date_hint(recipe, source.name), error.hint()};
  std::erase(hints, "");
  return error.with_hint(join(hints, "; "));
}

/// Those that it has wheels for, all older than the image's, the oldest first.
std::vector<std::string> WheelFailures::older_pythons(const SourceRelease& source) const {
  UvQuestion question;
  question.requirements = {fmt::format("{}=={}", source.name, source.version)};
  question.no_dependencies = true;
  question.no_sources = true;
  constexpr int kOldest = 5;
  constexpr int kNewest = 20;
  const std::string own = version_prefix(search_.request().python, 2);
  std::vector<std::string> minors;
  for (int number = kOldest; number < kNewest; ++number) {
    const std::string minor = fmt::format("3.{}", number);
    if (minor == own) break;
    const UvAnswer answer = search_.ask_for_python(question, minor);
    if (std::holds_alternative<PylockPackages>(answer)) minors.push_back(minor);
  }
  return minors;
}

/// Pythons of bases for which the release that would be chosen has a wheel, where it has none for
/// the image's: of what the recipe itself asks of the package, else of that requirement.
std::vector<std::string> WheelFailures::other_pythons(const std::string& requirement) const {
  const std::string name = package_of_requirement(requirement);
  UvQuestion question;
  const auto is_of_package = [&](const std::string& text) {
    return package_of_requirement(text) == name;
  };
  const UvQuestion& all = search_.question;
  std::copy_if(all.requirements.begin(), all.requirements.end(),
               std::back_inserter(question.requirements), is_of_package);
  std::copy_if(all.constraints.begin(), all.constraints.end(),
               std::back_inserter(question.constraints), is_of_package);
  if (question.requirements.empty()) question.requirements.push_back(requirement);
  if (search_.is_from_source(name)) return {};
  question.no_dependencies = true;
  question.prerelease = all.prerelease;
  const WheelRequest& request = search_.request();
  const auto has_wheel = [&](const std::string& minor) {
    const UvAnswer answer = search_.ask_for_python(question, minor);
    const auto* packages = std::get_if<PylockPackages>(&answer);
    const PylockPackage* one = packages == nullptr ? nullptr : find_pylock_package(*packages, name);
    return one != nullptr &&
           WheelTags(minor, request.glibc, request.architecture).best(wheel_files(*one));
  };
  const std::string own = version_prefix(request.python, 2);
  if (has_wheel(own)) return {};
  std::vector<std::string> minors = pythons_of_bases();
  std::erase_if(minors,
                [&](const std::string& minor) { return minor == own || !has_wheel(minor); });
  return minors;
}

/// Of one that `no-binary` names.
Conflict WheelFailures::no_source(const NeedsBuild& package) const {
  Conflict conflict;
  conflict.headline =
      fmt::format("`{}` {} has to be built, and {}", package.name, package.version,
                  search_.request().build ? "the Python indexes have no source of it"
                                          : "only bases made from packages can do that");
  conflict.facts = requirement_lines(search_.recipe(), package.name);
  conflict.facts.emplace_back("`no-binary` leaves its wheels out");
  conflict.hint = fmt::format("take `{}` out of `no-binary`", package.name);
  return conflict;
}

Conflict WheelFailures::no_wheel(const NeedsBuild& package, const UvAnswer& wheels_only) const {
  if (search_.is_from_source(package.name)) return no_source(package);
  const WheelRequest& request = search_.request();
  Conflict conflict;
  conflict.headline = fmt::format("`{}` {} has no wheel for Python {} and glibc {} on {}",
                                  package.name, package.version, version_prefix(request.python, 2),
                                  request.glibc, machine_name(request.architecture));
  conflict.facts = requirement_lines(search_.recipe(), package.name);
  conflict.facts.emplace_back(request.build ? "the Python indexes have no source of it either"
                                            : "it would have to be built from its source");
  const auto* packages = std::get_if<PylockPackages>(&wheels_only);
  const PylockPackage* older =
      packages == nullptr ? nullptr : find_pylock_package(*packages, package.name);
  std::vector<std::string> pins;
  if (older != nullptr) {
    conflict.facts.push_back(
        fmt::format("the newest release with a wheel that fits is {}", older->version));
    pins.push_back(fmt::format("{}=={}", older->name, older->version));
  } else if (packages != nullptr) {
    conflict.facts.emplace_back("older releases of what needs it do without it");
    pins = requested_pins(*packages);
  } else {
    conflict.facts.emplace_back("no older release with a wheel fits the recipe");
  }
  if (!pins.empty() && fits(pins)) {
    conflict.hint =
        fmt::format("to take older releases, add `{}` to `packages`", join(pins, "`, `"));
    return conflict;
  }
  const std::vector<std::string> minors =
      other_pythons(fmt::format("{}=={}", package.name, package.version));
  if (minors.empty()) {
    conflict.hint = fmt::format("leave out `{}` and what needs it", package.name);
  } else {
    conflict.facts.push_back(fmt::format("there is a wheel for Python {}", and_joined(minors)));
    conflict.hint = other_python_hint(search_.recipe(), minors, package.name);
  }
  return conflict;
}

/// The versions that the recipe's own packages have in `packages`.
std::vector<std::string> WheelFailures::requested_pins(const PylockPackages& packages) const {
  std::vector<std::string> pins;
  for (const PylockPackage& one : packages) {
    if (search_.is_requested(one.name)) {
      pins.push_back(fmt::format("{}=={}", one.name, one.version));
    }
  }
  return pins;
}

/// Whether a recipe with these requirements added has a lock: a hint must work.
bool WheelFailures::fits(const std::vector<std::string>& pins) const {
  UvQuestion question = search_.question;
  question.requirements.insert(question.requirements.end(), pins.begin(), pins.end());
  const UvAnswer answer = search_.ask(question);
  const auto* packages = std::get_if<PylockPackages>(&answer);
  return packages != nullptr && search_.without_wheel(*packages) == nullptr;
}

}  // namespace mlenv
