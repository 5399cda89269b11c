#pragma once
// `requirements:` of a recipe: the files that it names, read. Formats: docs/recipe.md.
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "recipes/recipe.hpp"

namespace mlenv {

/// Which format a file has, told by its name.
enum class RequirementFormat { lines, pyproject, pylock, uv_lock };
/// nullopt: another tool's file, that mlenv does not read; `why` then says so.
std::optional<RequirementFormat> requirement_format(std::string_view name, std::string& why);

/// Reads them, and what they include; asks no network and no uv. Throws the recipe's error for a
/// file that is not there or reached through a link, and for extras and groups that it has not;
/// `requirements-invalid` (usage) with `file:line:col` for what is wrong in a file, or is not
/// supported.
RequirementLists read_requirement_files(const Recipe& recipe);

/// The file or folder of this machine that a line of `RequirementLists::indexes` names, whether it
/// is there or not; empty: none.
fs::path index_path(std::string_view line);
/// The place of such a line in the recipe's files, which are read again, with what stands behind
/// the option there as its text; nullopt: no file of these has it.
std::optional<ListedText> find_index(const Recipe& recipe, const std::string& line);

/// Whether an item of `constraints` names a file: `-c x.txt`, `./x`, `x.txt`.
bool is_constraints_file(std::string_view text);

// Its parts, one a format.

class RequirementFolder;

/// requirements.txt, as pip reads it; `-r` and `-c` are followed.
/// `indexes`, may be null: is given the first place of each line for `RequirementLists::indexes`.
using IndexPlaces = std::map<std::string, ListedText>;
void read_requirement_lines(const RequirementFolder& folder, const RequirementSource& source,
                            RequirementLists& lists, IndexPlaces* indexes = nullptr);
/// A file all of whose lines are constraints, also those that it includes.
void read_constraint_lines(const RequirementFolder& folder, const Placed& file,
                           RequirementLists& lists);
/// `[project]` and `[dependency-groups]` of pyproject.toml.
void read_pyproject(const RequirementFolder& folder, const RequirementSource& source,
                    std::shared_ptr<const RequirementsText> file, RequirementLists& lists);
/// pylock.toml (PEP 751): every package of it is asked for, in its version.
/// `path`: the file's own, from the recipe's folder.
void read_pylock_file(const std::string& path, std::shared_ptr<const RequirementsText> file,
                      RequirementLists& lists);
/// uv.lock: what its project asks for; the versions of all that this needs are constraints.
void read_uv_lock(const RequirementFolder& folder, const RequirementSource& source,
                  std::shared_ptr<const RequirementsText> file, RequirementLists& lists);

/// The recipe's folder, out of which none of its files leads.
class RequirementFolder {
 public:
  explicit RequirementFolder(const Recipe& recipe) : recipe_(recipe) {}

  /// Throws the recipe's error at `place`.
  std::shared_ptr<const RequirementsText> open(const Placed& place) const;
  /// By a path in the recipe's folder; nullptr and a mistake when it cannot be had.
  std::shared_ptr<const RequirementsText> open(const std::string& path, std::string& mistake) const;
  fs::path path() const { return recipe_.folder(); }
  const Recipe& recipe() const { return recipe_; }
  [[noreturn]] void fail(const Placed& place, std::string_view message) const;

 private:
  const Recipe& recipe_;
};

}  // namespace mlenv
