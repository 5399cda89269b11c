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

/// How a question changes with its answers, where the recipe steers.
class SteeredSteps {
 public:
  SteeredSteps(const Steering& steering, UvQuestion& question)
      : steering_(steering), question_(question) {}

  /// What the question says from the start.
  void begin();
  /// Whether a package came in, or is missed, that has an index of its own and is asked for by
  /// others alone: uv heeds such an index for what it is asked for itself. The question was changed
  /// and can be asked again.
  bool names_own_indexes(const UvAnswer& answer);
  /// Whether the package is now looked for as a wheel alone, which `prefer-binary` asks for.
  bool prefers_wheel(const std::string& name);
  /// The same; and where that leaves nothing, its source is as good again.
  bool prefers_wheel(const UvAnswer& answer);

 private:
  bool is_asked_for(const std::string& name) const;

  const Steering& steering_;
  UvQuestion& question_;
  std::set<std::string> preferred_;  ///< packages that were once looked for as wheels alone
  std::vector<std::string> tried_;   ///< those of them that still are
};

/// Whether the recipe gives the package an index of its own.
bool has_own_index(const Recipe& recipe, const std::string& name);

/// uv's words with that project's name taken out: it is the recipe who requires.
std::string without_own_project(std::string text);

}  // namespace mlenv
