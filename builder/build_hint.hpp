#pragma once
// What a build that failed wanted, by what it said, and the line of a recipe that gives it that.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace mlenv {

struct FailedBuild {
  std::string package{};    ///< normalised; empty: not known
  std::string_view said{};  ///< the end of its output
  std::string python{};     ///< `3.11`
  std::string cuda{};       ///< release that the image carries; empty: none, or not known
  std::map<std::string, std::string> image_env{};  ///< the recipe's `env`, which builds do not have
  /// The recipe's `build: {constraints}`, as written: a hint's line keeps them.
  std::vector<std::string> constraints{};
  std::vector<std::string> tools{};  ///< normalised names of what was in its environment
  bool compiler = true;              ///< whether the base has one
  bool network = false;              ///< whether it had one
};

/// One hint, of the cause that is named most exactly; where none is known, what helps often.
std::string build_hint(const FailedBuild& build);
/// Of a hint of `build_hint`'s alone: its line for the recipe, where that can be followed without a
/// choice: not one of several, an example, or the network. Keys are `system`, `build.constraints`
/// and `build.requires.NAME`, of which one is there.
Remedy remedy_of_build_hint(std::string_view hint);

}  // namespace mlenv
