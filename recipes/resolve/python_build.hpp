#pragma once
// A CPython that no recipe names: the build that uv would install in its place, an archive of
// python-build-standalone (`install_only_stripped`), found in the list that each uv carries along
// (`uv python list`, docs.astral.sh/uv/concepts/python-versions).
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "base/http.hpp"
#include "base/progress.hpp"
#include "recipes/lock.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {

/// Where another copy of python-build-standalone's releases lies; uv's variable.
inline constexpr const char* kPythonMirrorVariable = "UV_PYTHON_INSTALL_MIRROR";

/// Minors that there are builds of (`uv python list` of uv 0.13.8); newer uv have newer ones, too.
inline constexpr auto kBuildPythons =
    std::to_array<std::string_view>({"3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"});

/// `write `python: "3.14"``, the oldest of those that `fits`; empty: none does, or the base is an
/// image, which takes none.
std::string python_to_write(const Recipe& recipe,
                            const std::function<bool(std::string_view minor)>& fits);

struct PythonBuild {
  std::string version;  ///< full: `3.12.8`
  std::string url;      ///< at the mirror, where the machine names one
};

/// The newest CPython of `minor` (`3.12`) that uv has for glibc on `architecture` (`x86_64`).
/// nullopt: its list has none. Throws `uv-failed`, `timeout`.
std::optional<PythonBuild> find_python_build(const fs::path& uv, std::string_view minor,
                                             std::string_view architecture);

/// The build of uv's answer, which is JSON; as above.
std::optional<PythonBuild> python_build_in(std::string_view answer, std::string_view minor);

/// Fetches it into `cache` unless that knows the bytes of that URL already; its digest is that of
/// what came, over TLS or from the machine's own mirror: from then on the lock holds it. Throws
/// `bad-python`, `network`, `certificate`, `http-status`.
LockedPython lock_python_build(const PythonBuild& build, Http& http, const fs::path& cache,
                               Progress& progress);

/// Where the archive `file` of a lock lies now: below the mirror, where `mirror` is not empty, else
/// in python-build-standalone's own releases. Empty for a file that is not called as those are,
/// `cpython-3.12.8+20241219-x86_64-….tar.gz`.
std::string python_build_url(std::string_view file, std::string_view mirror);

/// Where the interpreter of `lock` lies: the recipe's URL; a build of uv's at the machine's mirror,
/// else where it came from, else in the releases. Empty: the lock has none, or nowhere.
std::string interpreter_url(const Recipe& recipe, const Lock& lock, const fs::path& cache);

}  // namespace mlenv
