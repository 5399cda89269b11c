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

enum class Standing {
  same,
  unknown,  ///< nothing differs, and not all nodes tell
  noted,    ///< the job runs, and may be slower or give other numbers
  blocked,  ///< it fails, hangs, or is refused by one of them
};
std::string_view name_of(Standing standing);

struct AgreementRow {
  std::string rule;  ///< stable: `driver`
  std::string what;  ///< `NVIDIA driver`
  std::string standing = "same";
  std::vector<std::optional<std::string>> values;  ///< of each node; nothing: not known
  std::string effect;  ///< one sentence, where it is noted or blocked, as the next two
  std::string source;
  std::string remedy;
  friend bool operator==(const AgreementRow&, const AgreementRow&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rule", self.rule);
    visit("what", self.what);
    visit("standing", self.standing);
    visit("values", self.values);
    visit("effect", self.effect);
    visit("source", self.source);
    visit("remedy", self.remedy);
  }
};

struct Agreement {
  std::vector<std::string> nodes;
  std::vector<AgreementRow> rows;  ///< what is blocked first, then noted, unknown, the same

  /// The first row that blocks; null: none does.
  const AgreementRow* blocking() const;
  /// Rows that are blocked or noted.
  std::size_t differences() const;
  friend bool operator==(const Agreement&, const Agreement&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("nodes", self.nodes);
    visit("rows", self.rows);
  }
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

/// Throws `nodes-differ` (no) with the first row that blocks, what each node has of it, and what to
/// do.
void require_agreement(const Agreement& agreement);
/// A sentence for each row that is noted: `NVIDIA driver: 535.247.01 on n1; 580.95.05 on n2, n3
/// (…)`.
std::vector<std::string> notes_of(const Agreement& agreement);

/// mlenv.agreement/1 on one line, without the newline.
std::string render_agreement(const Agreement& agreement);

}  // namespace mlenv::job
