#pragma once
// Whether the nodes of a job are alike enough to work together, as one table: a row for each thing
// in which they differ, with what such a difference is known to do. Pure: what nodes tell of
// themselves in, rows out. The sentences are those of runner/changes where they say it already.
//
// Whether the image runs on a node at all is `mlenv check`'s to say, node by node.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/facts/facts.hpp"
#include "runner/job/agreement_table.hpp"
#include "runner/job/drive.hpp"
#include "runner/job/job.hpp"
#include "runner/job/node_link.hpp"

namespace mlenv::job {

struct NodeReport {
  std::string name;  ///< as the engine calls it
  NodeHello hello;
  Facts facts;
  std::optional<double> clock_offset;  ///< seconds by which its clock is ahead of ours, about
};

/// Of those whose facts are known.
std::vector<NodeReport> reports_of(const std::vector<NodeState>& nodes);

/// `on_gpus`: the ranks are to use GPUs.
Agreement agreement_of(const Job& job, const std::vector<NodeReport>& nodes, bool on_gpus);

/// Clocks that are further apart are noted: logs that are merged by time are out of order, and the
/// newest file of a shared folder may not be the newest.
inline constexpr double kSkewNoted = 2;
/// Beyond this munge (credentials' time to live, munge(7)) and Kerberos (clockskew, krb5.conf(5))
/// refuse: Slurm's steps and shared storage fail some time into the job. Less than that breaks no
/// rendezvous: frameworks measure time by each host's own monotonic clock.
inline constexpr double kSkewBlocked = 300;

/// Throws `nodes-differ` (no) with all that blocks: what each node has of it, what comes of it, and
/// what to do.
void require_agreement(const Agreement& agreement);
}  // namespace mlenv::job
