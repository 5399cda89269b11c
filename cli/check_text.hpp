#pragma once
// Verdicts for people: as text, as Markdown for a pull request; and for programs.
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/check_subjects.hpp"

namespace mlenv::cli {

/// Lines without their ends. Of one subject on one host its verdict and findings; of more a table,
/// and each finding once with all that it holds for.
std::vector<std::string> check_text(const Checked& checked);
std::vector<std::string> check_markdown(const Checked& checked);
/// mlenv.verdict/1
nlohmann::json check_json(const Checked& checked);

/// `runs here`, `does not run here: the NVIDIA driver is too old`; where it holds as far as is
/// known alone, with the facts that are not.
std::string headline_of(const Cell& cell);
/// Whether it runs as far as is known, while something that blocks or is a risk is not.
bool is_as_far_as_known(const Verdict& verdict);

/// Findings of one rule that ask for the same and are mended in the same way.
struct FindingGroup {
  /// What was found, and the cells in which it was.
  struct Found {
    std::string what;
    std::vector<const Cell*> cells;  ///< empty: it shows between the subjects
  };
  Finding finding;           ///< the first one's; of `found` only what follows counts
  std::vector<Found> found;  ///< each once, in the order of cells
};
/// Of all cells, worst first; in one group are findings that differ in nothing but `found`.
std::vector<FindingGroup> grouped(const Checked& checked);
/// A fact that rules would have needed, and the cells in which it is unknown.
struct UnknownFact {
  Unjudged first;  ///< its fact, why it is unknown, and how to get it known
  std::vector<std::string> rules;
  std::vector<const Cell*> cells;  ///< empty: it is unknown between the subjects
};
/// Of all cells, in the order of rules.
std::vector<UnknownFact> unknown_facts(const Checked& checked);
/// `a, b and 3 more`, of the cells' hosts; with several subjects also theirs.
std::string holds_for(const Checked& checked, const std::vector<const Cell*>& cells);

}  // namespace mlenv::cli
