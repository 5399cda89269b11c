#include "cli/diff_nodes.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/diff_changes.hpp"
#include "cli/running.hpp"
#include "recipes/text.hpp"
#include "runner/job/job_recording.hpp"

namespace mlenv::cli {
namespace {

/// Nodes of all attempts, each once, in the order in which they took part.
std::vector<std::string> nodes_taking_part(const RunRecord& record) {
  std::vector<std::string> nodes;
  if (!record.ranks) return nodes;
  for (const RecordedJobAttempt& attempt : record.ranks->attempts) {
    for (const RecordedPlace& place : attempt.places) {
      if (std::find(nodes.begin(), nodes.end(), place.node) == nodes.end()) {
        nodes.push_back(place.node);
      }
    }
  }
  return nodes;
}

NamedMoment moment_of(const RunRecords& records, const std::string& job, const std::string& node) {
  const fs::path path = job::node_facts(records.folder_of(job), node);
  NamedMoment moment;
  moment.name = job + ":" + node;
  const std::optional<std::string> text = read_small_file_if_exists(path, size_limit::kFacts);
  if (!text) {
    throw failure("absent", "the record of job `{}` has no facts of node `{}`", job, node)
        .hint("`mlenv facts --json` on the node writes what it is now");
  }
  moment.moment.host = read_facts(*text, path.string());
  return moment;
}

/// Nodes that differ from the first one in the same way.
struct Alike {
  std::vector<std::string> nodes;
  NamedMoment moment;  ///< of the first of them
  changes::Changes found;
};

bool matters(const changes::Change& change) { return change.weight != changes::Weight::incidental; }

bool are_alike(const changes::Changes& a, const changes::Changes& b) {
  const auto of = [](const changes::Changes& all) {
    std::vector<changes::Change> found;
    std::copy_if(all.found.begin(), all.found.end(), std::back_inserter(found), matters);
    return found;
  };
  return of(a) == of(b) && a.open == b.open;
}

/// With --json each comparison is answered by itself.
std::vector<Alike> compared(Ui& ui, const RunRecords& records, const std::string& job,
                            const std::vector<std::string>& nodes, NamedMoment& first) {
  std::vector<Alike> groups;
  for (auto node = nodes.begin() + 1; node != nodes.end(); ++node) {
    NamedMoment moment = moment_of(records, job, *node);
    changes::Changes found = compare(ui, first, moment);
    if (ui.options.json) ui.answer(canonical(changes_json(first, moment, found)));
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Alike& group) {
      return are_alike(group.found, found);
    });
    if (same != groups.end()) {
      same->nodes.push_back(*node);
    } else {
      groups.push_back({{*node}, std::move(moment), std::move(found)});
    }
  }
  return groups;
}

void answer_text(const Ui& ui, const std::string& first, const NamedMoment& moment,
                 const std::vector<Alike>& groups, bool all) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Alike& group = groups[i];
    if (i > 0) ui.answer("");
    const bool one = group.nodes.size() == 1;
    ui.answer(printable(fmt::format("{} {} {}", join(group.nodes, ", "),
                                    group.found.differ() ? one ? "differs from" : "differ from"
                                    : one                ? "is like"
                                                         : "are like",
                                    first)));
    if (!group.found.differ() && !all) continue;
    for (const std::string& line : changes_text(moment, group.moment, group.found, all)) {
      ui.answer(line.empty() ? line : "  " + line);
    }
  }
}

/// The run that is named without another one.
std::string job_alone(const RunRecords& records, const std::string& word) {
  try {
    return records.find(word);
  } catch (const Error& error) {
    std::error_code unknown;
    if (error.code() != "no-run" || !fs::exists(word, unknown)) throw;  // a file is half of a pair
    throw usage_error("usage", "what `{}` is to be compared with is missing", word)
        .hint("`mlenv diff A B`; a job alone, `mlenv diff JOB`, compares its nodes");
  }
}

}  // namespace

std::optional<NamedMoment> node_named(const std::string& argument) {
  const std::size_t colon = argument.find(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == argument.size()) return std::nullopt;
  const RunRecords records = run_records();
  std::string id;
  try {
    id = records.find(argument.substr(0, colon));
  } catch (const Error& error) {
    if (error.code() == "no-run") return std::nullopt;
    throw;
  }
  const RunRecord record = records.read_brief(id);
  if (!record.start.launch) return std::nullopt;
  const std::string node = argument.substr(colon + 1);
  const std::vector<std::string> nodes = nodes_taking_part(record);
  if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
    return moment_of(records, id, node);
  }
  throw usage_error("no-such-node", "job `{}` had no node `{}`", id, node)
      .because("it had " + (nodes.empty() ? "none yet" : join(nodes, ", ")));
}

int diff_nodes(Ui& ui, const std::string& job, bool all) {
  const RunRecords records = run_records();
  const std::string id = job_alone(records, job);
  const RunRecord record = records.read_brief(id);
  const std::vector<std::string> nodes = nodes_taking_part(record);
  if (!record.start.launch || nodes.size() < 2) {
    throw usage_error("diff-pair", "`{}` has no nodes to compare with each other", job)
        .because(record.start.launch ? fmt::format("it ran on {}", counted(nodes.size(), "node"))
                                     : std::string("it ran on one machine, without `--nodes`"))
        .hint("`mlenv diff A B` compares two runs");
  }
  NamedMoment first = moment_of(records, id, nodes.front());
  const std::vector<Alike> groups = compared(ui, records, id, nodes, first);
  if (!ui.options.json) answer_text(ui, nodes.front(), first, groups, all);
  const bool differ = std::any_of(groups.begin(), groups.end(),
                                  [](const Alike& group) { return group.found.differ(); });
  return differ ? kAnswerIsNo : 0;
}

}  // namespace mlenv::cli
