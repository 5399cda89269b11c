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

/// `runs here`, `does not run here: the NVIDIA driver is too old`
std::string headline_of(const Cell& cell);

/// One finding, with all that it holds for: subjects and hosts.
struct FindingGroup {
  Finding finding;  ///< the first one's
  std::vector<const Cell*> cells;
};
/// Of all cells, worst first; findings of one rule and severity with the same remedy are one.
std::vector<FindingGroup> grouped(const Checked& checked);
/// `a, b and 3 more`, of the cells' hosts; with several subjects also theirs.
std::string holds_for(const Checked& checked, const FindingGroup& group);

}  // namespace mlenv::cli
