#pragma once
// How uv is told what a recipe says of choosing (Steering): options, files beside the question, and
// a small project of its own for packages that have an index of their own, which uv takes from
// `[tool.uv.sources]` alone.
#include <string>
#include <vector>

#include "base/files.hpp"
#include "recipes/recipe.hpp"
#include "recipes/resolve/uv.hpp"

namespace mlenv {

/// Overrides as uv reads them; what is left out is overridden by a requirement that never holds,
/// which every uv understands.
std::vector<std::string> override_lines(const Steering& steering);

/// Files and words for one question in `folder`.
class UvSteering {
 public:
  UvSteering(const UvQuestion& question, const Recipe* recipe, const fs::path& folder);

  /// Options of `uv pip compile`, its further input among them.
  const std::vector<std::string>& words() const { return words_; }
  /// What of the question's requirements is left for `requirements.in`.
  const std::vector<std::string>& requirements() const { return requirements_; }
  /// Addresses of the indexes, for the logins that uv is lent.
  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  void write_overrides(const UvQuestion& question, const fs::path& folder);
  void write_project(const Recipe& recipe, const std::vector<std::string>& pinned,
                     const fs::path& folder);

  std::vector<std::string> words_;
  std::vector<std::string> requirements_;
  std::vector<std::string> addresses_;
};

/// Whether the recipe gives the package an index of its own.
bool has_own_index(const Recipe& recipe, const std::string& name);

/// uv's words with that project's name taken out: it is the recipe who requires.
std::string without_own_project(std::string text);

}  // namespace mlenv
