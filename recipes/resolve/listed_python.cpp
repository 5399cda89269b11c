#include "recipes/resolve/listed_python.hpp"

#include <fmt/core.h>

#include "recipes/distribution.hpp"
#include "recipes/resolve/python_build.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kLoosen = "or loosen `requires-python`";
/// The releases of the base's distribution, and the ones that would do.
void add_suites(Conflict& conflict, const Recipe& recipe, const std::string& wanted) {
  const Distribution* distribution = find_distribution(recipe.distribution);
  std::vector<std::string> fitting;
  if (distribution != nullptr) {
    for (const SuitePython& known : distribution->pythons) {
      conflict.facts.push_back(
          fmt::format("{}:{} has Python {}", recipe.distribution, known.suite, known.minor));
      if (version_satisfies(known.minor, wanted)) {
        fitting.push_back(fmt::format("`base: {}:{}`", recipe.distribution, known.suite));
      }
    }
  }
  std::string build = python_to_write(recipe, [&](std::string_view minor) {
    return version_satisfies(minor, wanted) ||
           version_satisfies(fmt::format("{}.99", minor), wanted);
  });
  if (build.empty()) build = "bring a Python along with `sources: {python: {url: …, sha256: …}}`";
  conflict.hint = fitting.empty()
                      ? fmt::format("{}, {}", build, kLoosen)
                      : fmt::format("write {}, {}, {}", join(fitting, " or "), build, kLoosen);
}

}  // namespace

std::optional<Conflict> listed_python_conflict(const Recipe& recipe, const Lock& lock) {
  for (const ListedText& wanted : recipe.listed.pythons) {
    if (version_satisfies(lock.python, wanted.text)) continue;
    Conflict conflict;
    const std::string holder = !lock.interpreter ? fmt::format("`base: {}` has", recipe.base.text)
                               : recipe.sources.python
                                   ? "the archive of `sources: {python: …}` holds"
                                   : fmt::format("`python: {}` is", recipe.python->text);
    conflict.headline = fmt::format("{} Python {}, `{}` wants {}", holder, lock.python,
                                    wanted.file->shown_path.string(), wanted.text);
    conflict.facts.push_back(wanted.shown(fmt::format("it asks for Python {}", wanted.text)));
    if (recipe.sources.python) {
      conflict.hint = fmt::format("name the archive of such a Python there, {}", kLoosen);
    } else if (recipe.base_is_image) {
      conflict.hint = fmt::format("choose an image with such a Python, {}", kLoosen);
    } else {
      add_suites(conflict, recipe, wanted.text);
    }
    return conflict;
  }
  return std::nullopt;
}

}  // namespace mlenv
