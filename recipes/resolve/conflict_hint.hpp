#pragma once
// What uv's account of a conflict means for whoever wrote the recipe: a wheel for other Pythons or
// another system, a Python that is too old, demands that `cuda` stands for.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "recipes/recipe.hpp"
#include "recipes/resolve/conflict.hpp"

namespace mlenv {

/// The newest release of a package (normalised name) that has something for the image, whatever the
/// recipe says; empty: none.
using NewestRelease = std::function<std::string(const std::string& name)>;

/// Pythons of bases for which a package has a wheel, `3.8`, `3.9`, in the releases that the recipe
/// allows, or, where it does not ask for the package itself, that `requirement` does; empty: none,
/// or the image's is among them.
using OtherPythons = std::function<std::vector<std::string>(const std::string& requirement)>;

/// Puts headline, facts and hint into the recipe's terms where uv's account tells enough. `python`
/// is the image's, in full. Asks for the newest release where the recipe's own is none of the
/// index's, and for other Pythons where releases that it allows have no wheel for the image's.
void explain_conflict(Conflict& conflict, const Recipe& recipe, const std::string& python,
                      const NewestRelease& newest, const OtherPythons& others);

/// What uv says of a package (normalised name) without a wheel for the image's Python: those that
/// its wheels are for, `3.6`, `3.7`; empty: something else.
std::vector<std::string> pythons_of_wheels(const std::string& told, const std::string& name);

/// Lines that lead on: `write `base: debian:bullseye` (Python 3.9), or choose another release of
/// `x``, for wheels of these Pythons.
std::string other_python_hint(const Recipe& recipe, const std::vector<std::string>& minors,
                              const std::string& name);

/// Whether the recipe or a file of its `requirements` asks for one exact version of the package.
bool asks_for_exact_version(const Recipe& recipe, const std::string& name);

/// For a build that fails of a release that is not the newest, though nobody asked for one: the
/// resolution went back until nothing spoke against it. Empty: it is not so.
std::string held_back_hint(const Recipe& recipe, const std::string& name,
                           const std::string& version, const NewestRelease& newest);

/// For a build that fails of a release which no exact version of the recipe asks for, while others
/// do: what came later than these may go too far. Empty: it is not so, or `exclude-newer` is said.
std::string date_hint(const Recipe& recipe, const std::string& name);

/// `3.7, 3.8 and 3.9`
std::string and_joined(std::vector<std::string> all);

/// Bases whose Python `fits`: `write `base: debian:trixie` (Python 3.13)`; empty: there is
/// none. At most two: the newest of the recipe's own distribution, and of others.
std::string bases_with_python(const Recipe& recipe,
                              const std::function<bool(std::string_view minor)>& fits);

}  // namespace mlenv
