#pragma once
// A job's controller: brings up its nodes, makes them ready, runs its ranks to their end, and
// starts again what may be started again. The same for each engine; one thread, nobody waits for
// anything but in poll(2).
//
// An attempt is over when each of its ranks has ended or its node is lost. The first rank that
// fails, or the first node that is lost, ends it for all: the others get SIGTERM, and SIGKILL after
// `Job::grace`. It does not where that rank alone is started again (rank_policy.hpp). Nodes that
// come while a job of MIN:MAX runs on fewer end an attempt likewise, for one with more of them
// (elastic.hpp).
#include <poll.h>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "images/inspect/image_facts.hpp"
#include "images/store.hpp"
#include "runner/job/job.hpp"
#include "runner/job/node_link.hpp"
#include "runner/job/plan.hpp"
#include "runner/job/preflight.hpp"
#include "runner/job/registry_grants.hpp"
#include "runner/job/storage_proof.hpp"
#include "runner/launch/node_starter.hpp"
#include "runner/local/life.hpp"

namespace mlenv::job {

struct Agreement;

/// How far a job has come.
struct JobProgress {
  std::uint64_t attempts = 0;         ///< that have begun
  std::uint64_t restarts = 0;         ///< of `Job::restarts`, that are used up
  std::chrono::milliseconds used{0};  ///< of `Job::deadline`: as long as somebody drove it
  friend bool operator==(const JobProgress&, const JobProgress&) = default;
};

struct DrivePlan {
  Job job;
  std::string id;            ///< of the job's record
  std::string image_digest;  ///< of the manifest; empty, of a preflight alone: none
  std::optional<std::string> code_digest;
  std::vector<DataSet> data{};  ///< that nodes make sure of, and mount for all ranks
  /// That has a name: nodes prove that it is the same before anything starts there.
  std::vector<StorageUse> storage{};
  LocalRun run;      ///< what all ranks share; the variables of a rank come below its `env`
  RunStart start;    ///< the same, for their records
  std::string gpus;  ///< of each node: as RankStart has it
  /// What nodes are judged by before anything starts; nothing: nobody asks.
  std::optional<ImageFacts> image_facts;
  bool image_alone = false;              ///< it is brought there, and nothing is run
  std::vector<std::string> image_names;  ///< that it is to have there
  PullFrom pull_from{};                  ///< nodes fetch the image there
  bool preflight_alone = false;          ///< nothing is started after it
  LinkSettings link;
  std::chrono::milliseconds meeting{60'000};  ///< a node has so long until it answers first
  std::uint64_t most_log_bytes = 0;           ///< of each rank, on its node
  JobProgress before{};  ///< of the controllers that drove the job before this one
};

/// A node as far as it is known.
struct NodeState {
  NodeOffer offer;
  std::optional<NodeHello> hello;
  std::optional<Facts> facts;
  bool image = false;                    ///< it has proven its digest
  bool code = false;                     ///< it has it, or there is none
  std::optional<std::string> lost;       ///< why
  double clock_offset = 0;               ///< seconds by which its clock is ahead of ours, about
  std::vector<DataPlace> data{};         ///< that it has, of DrivePlan::data
  std::vector<StorageProven> storage{};  ///< all of DrivePlan::storage, or nothing yet
};

/// How a rank of one attempt ended.
struct RankResult {
  Rank rank;
  std::string node;
  std::string run;             ///< id of its record on its node; empty: it was not started
  std::optional<RankEnd> end;  ///< nothing: its node was lost
  bool stopped = false;        ///< it was told to end before it was heard to have ended
  double stop_sent = 0;        ///< seconds since 1970, by our clock: when it was told
  std::uint64_t replaced = 0;  ///< so often it alone was started again
  std::vector<std::string> last_lines{};  ///< the newest of its log, as they lie there
};

/// What went wrong first.
struct FirstFailure {
  enum class What { rank, node } what = What::rank;
  std::uint64_t rank = 0;  ///< of a rank
  std::string node;
  std::string why;  ///< of a node; of a rank that did not end by itself: it stalled
};

struct AttemptResult {
  std::uint64_t number = 0;  ///< 0 is the first
  std::string started;       ///< UTC, RFC 3339 with milliseconds
  std::string ended;
  std::vector<Place> places;
  std::vector<RankResult> ranks;
  std::optional<FirstFailure> failure;
  /// Whatever failed first: ranks that lose a peer may be heard to fail before its node is missed.
  bool node_lost = false;
  bool to_grow = false;  ///< its ranks were told to end, since the job has more nodes now
};

struct JobOutcome {
  /// 0; the status of the rank that failed first; 125 where a node was lost; 124 at its deadline;
  /// after signal n to us that of the first rank that had one of its own, else 128+n (15 for
  /// `mlenv stop`).
  int exit_code = 0;
  int signal = 0;  ///< that ended it; 0: none
  EndedBy ended_by = EndedBy::itself;
  std::uint64_t attempts_before = 0;  ///< DrivePlan::before
  std::vector<AttemptResult> attempts;
  std::vector<NodeState> nodes;
};

/// What is heard meanwhile; nothing of it may take long.
struct DriveEvents {
  std::function<void(const std::string&)> notice{};  ///< a sentence for the person
  /// How much of the image's layers a node has by now.
  std::function<void(const std::string& node, std::uint64_t there, std::uint64_t all)> sending{};
  /// All nodes that take part are ready, each with its facts. May throw: then nothing is started.
  std::function<void(const std::vector<NodeState>&)> ready{};
  /// What a preflight found, before the first attempt, where the job has one.
  std::function<void(const Preflight&)> preflight{};
  std::function<void(std::uint64_t attempt, const std::vector<Place>&, const JobPlan&)> planned{};
  std::function<void(std::uint64_t attempt, std::uint64_t rank)> started{};
  /// A line as it lies in the rank's log (record/run_log.hpp).
  std::function<void(std::uint64_t attempt, std::uint64_t rank, const std::string& line)> line{};
  std::function<void(const AttemptResult&)> attempt_ended{};
  /// Where the job is, when that changes, and every ten seconds.
  std::function<void(const JobProgress&)> progress{};
  /// In what the nodes differ, once for each time that it changes (agreement.hpp).
  std::function<void(const Agreement&)> differ{};
  /// Others who wait in the controller's poll(2): what for, appended; and what came of it.
  std::function<void(std::vector<pollfd>&)> poll_for{};
  std::function<void(const pollfd*)> polled{};
  /// A listening control socket (local/control.hpp), on which `mlenv stop` asks; -1: none.
  int control = -1;
};

/// What of several failures came first: by the time at which ranks ended (their nodes' clocks, set
/// right) and nodes were last heard. nullopt: nothing failed.
struct LostNode {
  std::string name;
  double last_heard = 0;  ///< seconds, by our clock
  std::string why;
};
std::optional<FirstFailure> first_failure(const std::vector<RankResult>& ranks,
                                          const std::map<std::string, double>& clock_offsets,
                                          const std::vector<LostNode>& lost);

/// `ended with status 3`, `was killed for want of memory`.
std::string how_it_ended(const RankEnd& end);
/// The same of the rank that failed first; `was lost`, `stalled: …`.
std::string why_it_failed(const FirstFailure& failure, const RankResult& rank);

/// Of the store's things this process needs those of the plan alone from here on: `mlenv gc` may
/// take the others.
void need_only_what_it_needs(const Store& store, const DrivePlan& plan);

/// To the end. SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to all ranks, which have
/// `Job::grace` then; another one kills them; SIGUSR1 and SIGUSR2 are passed on alone. Throws, with
/// nothing left on any node: `no-node` (fewer nodes than the job needs could be made ready; what
/// ssh or srun said is in it), `bad-job`, `links-broken`, what `ready` throws, and what a node
/// could not do.
JobOutcome drive(Store& store, NodeStarter& starter, const DrivePlan& plan,
                 const DriveEvents& events);

}  // namespace mlenv::job
