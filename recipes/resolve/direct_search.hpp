#pragma once
// Which packages by address a recipe needs: those that it asks for, in this environment; what these
// ask for by address in turn, with the extras that are asked of them; of its constraints those on
// packages that are needed anyway.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "recipes/marker.hpp"
#include "recipes/requirement.hpp"
#include "recipes/resolve/source_release.hpp"
#include "recipes/resolve/wheels.hpp"

namespace mlenv {

/// A wheel's own requirement (`Requires-Dist`): as `parse_requirement` reads it, but also with an
/// address that no recipe could name, which is left as it is. nullopt: neither.
std::optional<Requirement> read_dependency(const std::string& text);

class DirectSearch {
 public:
  using Build = std::function<std::variant<BuiltRelease, Conflict>(const DirectRequirement&)>;

  /// Throws as `direct_requirements`.
  DirectSearch(const Recipe& recipe, MarkerEnvironment environment, Build build);

  /// Builds all that is known to be needed and was not built. A Conflict also where one asks for
  /// another at a place that only its author's machine has, and where two ask for one at different
  /// places, and the recipe names none.
  std::optional<Conflict> build_needed();
  /// Whether a package that was found has a constraint by address, or one by address was asked for
  /// more extras: these are needed from now on.
  bool needs_more(const WheelResolution& found);
  /// The same where nothing was found for this reason: a package that it speaks of may be at its
  /// address alone.
  bool needs_more(const Conflict& conflict);

  const std::vector<BuiltRelease>& built() const { return built_; }

 private:
  bool is_needed(const std::string& name) const;
  bool take(const std::string& name);
  bool ask(const std::string& name, const std::vector<std::string>& extras);
  std::optional<Conflict> follow(const BuiltRelease& release, bool& more);
  std::optional<Conflict> follow_address(const BuiltRelease& release, const std::string& text,
                                         const Requirement& wanted, bool& more);

  const Recipe& recipe_;
  MarkerEnvironment environment_;
  Build build_;
  std::vector<DirectRequirement> needed_;
  std::vector<DirectRequirement> constraints_;  ///< that nothing was found to need
  std::map<std::string, std::set<std::string>> extras_;
  std::vector<BuiltRelease> built_;  ///< of `needed_`, in its order
  struct Asking {
    std::string name;
    std::string text;
  };
  std::map<std::string, Asking> asking_;  ///< which wheel first named what no recipe does
};

}  // namespace mlenv
