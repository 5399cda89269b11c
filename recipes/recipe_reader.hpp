#pragma once
// From a YAML tree to a Recipe, key by key; what is wrong goes to `Mistakes` and reading goes on.
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/distribution.hpp"
#include "recipes/mistakes.hpp"
#include "recipes/recipe.hpp"
#include "recipes/yaml.hpp"

namespace mlenv {

/// Reading of values whose mistakes are recorded; nullopt after a mistake.
class ValueReader {
 public:
  explicit ValueReader(Mistakes& mistakes) : mistakes_(mistakes) {}

  void mistake(const YamlNode& node, std::string message) {
    mistakes_.add(node.line, node.column, std::move(message));
  }
  /// The scalar's text; `what` names the key, `example` is a value that would do.
  std::optional<Placed> text(const YamlNode& node, std::string_view what, std::string_view example);
  /// A list of texts; nothing at all is an empty list.
  std::vector<Placed> texts(const YamlNode& node, std::string_view what, std::string_view example);
  /// Members of a map: unknown, duplicate and non-text keys are reported and left out.
  std::vector<std::pair<std::string, const YamlNode*>> members(
      const YamlNode& node, std::string_view what, std::span<const std::string_view> known);

 private:
  Mistakes& mistakes_;
};

class RecipeReader {
 public:
  RecipeReader(Recipe& recipe, Mistakes& mistakes)
      : recipe_(recipe), mistakes_(mistakes), values_(mistakes) {}
  void read(const YamlNode& root);

 private:
  void read_member(const std::string& key, const YamlNode& value);
  void name(const YamlNode& node);
  void base(const YamlNode& node);
  void base_suite(const YamlNode& node, const Distribution& distribution);
  void image_base(const YamlNode& node, const std::string& text);
  void check_image_base(const YamlNode& root);
  void python(const YamlNode& node);
  void framework(const YamlNode& node);
  void cuda(const YamlNode& node);
  /// Whether a key is there that brings Python packages in.
  static bool names_wheels(const YamlNode& root);
  void check_cuda(const YamlNode& root);
  void driver(const YamlNode& node);
  void gpus(const YamlNode& node);
  void libraries(const YamlNode& node);
  void compiler(const YamlNode& node);
  void check_demands(const YamlNode& root);
  void packages(const YamlNode& node);
  void system_packages(const YamlNode& node);
  void env(const YamlNode& node);
  void workdir(const YamlNode& node);
  void command(const YamlNode& node);
  void bytecode(const YamlNode& node);
  bool flag(const YamlNode& node, std::string_view key);
  void sources(const YamlNode& node);
  void debian_source(const YamlNode& node);
  void python_source(const YamlNode& node);
  void snapshot_source(const YamlNode& node);
  std::optional<std::string> source_url(const YamlNode& node, std::string_view what);
  void files(const YamlNode& node);
  /// A path in the recipe's folder, clean.
  std::optional<std::string> project_path(const YamlNode& node, std::string_view text,
                                          std::string_view example);
  void requirements(const YamlNode& node);
  void requirement_source(const YamlNode& node);
  bool check_requirement_source(const YamlNode& node, const RequirementSource& source);
  bool check_target(const YamlNode& node, const std::string& target);
  void run(const YamlNode& node);
  void run_command(const YamlNode& node, RunStep& step);
  void run_map(const YamlNode& node, RunStep& step);
  void run_secrets(const YamlNode& node, RunStep& step);
  void data(const YamlNode& node);
  void data_set(const YamlNode& node, RecipeData& one);
  void data_source(const YamlNode& node, const std::string& text, RecipeData& one);
  void data_target(const YamlNode& node, const std::string& text, RecipeData& one);
  void check_data();
  void platforms(const YamlNode& node);
  void check_platforms();
  bool check_requirement(const YamlNode& node, const std::string& text);
  void overrides(const YamlNode& node);
  void exclude(const YamlNode& node);
  void constraints(const YamlNode& node);
  std::vector<Placed> constraint_list(const YamlNode& node, std::string_view what);
  void no_binary(const YamlNode& node);
  void only_binary(const YamlNode& node);
  void prefer_binary(const YamlNode& node);
  std::optional<std::string> package_name(const YamlNode& node, const std::string& text);
  /// Names, or `:all:`; one alone may be a text.
  std::set<std::string> package_names(const YamlNode& node, std::string_view key, bool may_be_all);
  void prerelease(const YamlNode& node);
  void exclude_newer(const YamlNode& node);
  void package_indexes(const YamlNode& node);
  void package_index(const std::string& name, const YamlNode& node);
  void find_links(const YamlNode& node, PackageIndex& index);
  void dependency_metadata(const YamlNode& node);
  void stated_metadata(const YamlNode& node);
  void stated_member(const std::string& key, const YamlNode& value, StatedMetadata& stated);
  std::vector<std::string> requirement_texts(const YamlNode& node, std::string_view what);
  void build(const YamlNode& node);
  void build_requirements(const YamlNode& node);
  void build_env(const YamlNode& node);
  void config_settings(const YamlNode& node);
  void check_steering();

  Recipe& recipe_;
  Mistakes& mistakes_;
  ValueReader values_;
};

}  // namespace mlenv
