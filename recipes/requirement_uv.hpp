#pragma once
// `[tool.uv]` of a pyproject.toml, as far as it says how packages are chosen and built.
#include <string>

#include "recipes/marker.hpp"
#include "recipes/requirement_toml.hpp"

namespace mlenv {

/// What is known of a marker before an image's Python and machine are: it holds on all, on none, or
/// on some of those that the recipe may be for.
MarkerReach marker_reach(const std::string& marker, const Recipe& recipe);

class UvSettings {
 public:
  /// `uv` is the table; they must outlive this.
  UvSettings(const RequirementFolder& folder, const RequirementSource& source,
             const ListedToml& toml, const TomlValue& uv)
      : folder_(folder), source_(source), toml_(toml), uv_(uv) {}

  /// Adds all that it says to `lists`; what is not about choosing and building is passed over, what
  /// is and does not count here is told among `notes`.
  void read(RequirementLists& lists) const;
  /// The entry of `sources` that counts for the package, with the extras and groups that the recipe
  /// takes; nullptr: none does. One that only some images would take is a mistake.
  const TomlValue* source_of(const std::string& package) const;
  /// The folder of the workspace's member of that name, from the recipe's; empty: none is known.
  std::string member_folder(const std::string& name) const;

 private:
  const TomlReader& reader() const { return toml_.reader(); }
  std::vector<std::string> requirements(const TomlValue& list) const;
  std::string requirement(const TomlValue& at) const;
  std::set<std::string> names(const std::string& key) const;
  std::string name(const TomlValue& at, const std::string& text) const;
  void exclude_newer(Steering& steering, RequirementLists& lists) const;
  void constraints(RequirementLists& lists) const;
  void metadata(Steering& steering) const;
  void build(BuildSteering& build) const;
  void config_settings(BuildSteering& build) const;
  void indexes(RequirementLists& lists) const;
  void add_index(const TomlValue& at, const std::string& option, RequirementLists& lists) const;
  std::string address(const TomlValue& at) const;
  void own_indexes(Steering& steering) const;
  const TomlValue* index(const std::string& name) const;
  bool is_chosen(const TomlValue& entry) const;
  bool counts(const TomlValue& entry, const std::string& package) const;
  void note(const char* key, std::string text, RequirementLists& lists) const;

  const RequirementFolder& folder_;
  const RequirementSource& source_;
  const ListedToml& toml_;
  const TomlValue& uv_;
};

}  // namespace mlenv
