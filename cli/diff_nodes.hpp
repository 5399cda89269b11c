#pragma once
// `mlenv diff` of the nodes of one job: by the facts that each told when it was last made ready.
#include <optional>
#include <string>

#include "cli/diff_moments.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {

/// `JOB:NODE`, the node as the job's engine calls it: its facts. nullopt: it is no name of a job
/// with something behind it. Throws `no-such-node` (usage) for a node that the job did not have.
std::optional<NamedMoment> node_named(const std::string& argument);

/// Each node of a job against its first one; in text nodes that differ from it alike are told
/// together, as JSON each is mlenv.diff/1 on a line. 3 when some differ, else 0. Throws `no-run`,
/// and `diff-pair` (usage) for what is no job on several nodes.
int diff_nodes(Ui& ui, const std::string& job, bool all);

}  // namespace mlenv::cli
