#pragma once
// What a record has of a run on several nodes: how it was asked for, and what became of its ranks.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlenv {

/// `run.json`'s `job`: of one rank of a run on several nodes.
struct RecordedRank {
  std::string job;         ///< id of that run's record
  std::uint64_t rank = 0;  ///< 0 ... of - 1
  std::uint64_t of = 1;
  std::string node;           ///< as the engine calls it
  std::string role;           ///< `worker`, `chief`, `ps`, `evaluator`
  std::uint64_t attempt = 0;  ///< 0 is the first
  friend bool operator==(const RecordedRank&, const RecordedRank&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("job", self.job);
    visit("rank", self.rank);
    visit("of", self.of);
    visit("node", self.node);
    visit("role", self.role);
    visit("attempt", self.attempt);
  }
};

/// `run.json`'s `launch`: of a run on several nodes.
struct RecordedLaunch {
  std::string engine;                ///< `local`, `ssh`, `slurm`
  std::vector<std::string> offered;  ///< nodes that it could choose from
  std::uint64_t least_nodes = 1;
  std::uint64_t most_nodes = 1;
  std::uint64_t ranks_per_node = 1;
  std::string strategy;   ///< `plain`, `allreduce`, `parameter-server`
  std::string framework;  ///< `none`, `torch`, `jax`, `tensorflow`, `mpi`
  std::uint64_t restarts = 0;
  std::optional<std::string> interface;
  std::optional<std::string> code_digest;  ///< of the snapshot that its nodes were given
  friend bool operator==(const RecordedLaunch&, const RecordedLaunch&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("engine", self.engine);
    visit("offered", self.offered);
    visit("least_nodes", self.least_nodes);
    visit("most_nodes", self.most_nodes);
    visit("ranks_per_node", self.ranks_per_node);
    visit("strategy", self.strategy);
    visit("framework", self.framework);
    visit("restarts", self.restarts);
    visit("interface", self.interface);
    visit("code_digest", self.code_digest);
  }
};

struct RecordedPlace {
  std::string node;
  std::string host;  ///< what it calls itself
  std::string address;
  std::string interface;
  friend bool operator==(const RecordedPlace&, const RecordedPlace&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("host", self.host);
    visit("address", self.address);
    visit("interface", self.interface);
  }
};

struct RecordedRankEnd {
  std::uint64_t rank = 0;
  std::string node;
  std::string role;
  std::optional<std::string> run;          ///< id of its own record, on its node
  std::optional<std::uint64_t> exit_code;  ///< nothing: its node was lost, or it goes on
  std::optional<std::uint64_t> signal;
  bool out_of_memory = false;
  bool stopped = false;        ///< it was told to end before it did
  std::uint64_t replaced = 0;  ///< so often it alone was started again, and the others went on
  friend bool operator==(const RecordedRankEnd&, const RecordedRankEnd&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("node", self.node);
    visit("role", self.role);
    visit("run", self.run);
    visit("exit_code", self.exit_code);
    visit("signal", self.signal);
    visit("out_of_memory", self.out_of_memory);
    visit("stopped", self.stopped);
    visit("replaced", self.replaced);
  }
};

/// What went wrong first in an attempt.
struct RecordedFirstFailure {
  std::optional<std::uint64_t> rank;  ///< nothing: the node was lost
  std::string node;
  std::string why;
  friend bool operator==(const RecordedFirstFailure&, const RecordedFirstFailure&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("rank", self.rank);
    visit("node", self.node);
    visit("why", self.why);
  }
};

struct RecordedJobAttempt {
  std::uint64_t number = 0;  ///< 0 is the first
  std::string started;       ///< UTC, RFC 3339 with milliseconds
  std::optional<std::string> ended;
  std::vector<RecordedPlace> places;
  std::vector<std::string> left;  ///< nodes of the attempt before that are not of this one
  std::vector<std::string> came;  ///< and the other way round
  std::vector<RecordedRankEnd> ranks;
  std::optional<RecordedFirstFailure> failure;
  friend bool operator==(const RecordedJobAttempt&, const RecordedJobAttempt&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("number", self.number);
    visit("started", self.started);
    visit("ended", self.ended);
    visit("places", self.places);
    visit("left", self.left);
    visit("came", self.came);
    visit("ranks", self.ranks);
    visit("failure", self.failure);
  }
};

/// Declared data as a node had it.
struct RecordedNodeData {
  std::string node;
  std::string name;
  std::string digest;
  std::string how;          ///< `found` at its path, `kept` by an earlier job, `staged` for this
  std::string path;         ///< on the node
  std::uint64_t bytes = 0;  ///< of all files
  std::uint64_t sent_bytes = 0;  ///< that came for this job
  double seconds = 0;            ///< that it took
  friend bool operator==(const RecordedNodeData&, const RecordedNodeData&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("name", self.name);
    visit("digest", self.digest);
    visit("how", self.how);
    visit("path", self.path);
    visit("bytes", self.bytes);
    visit("sent_bytes", self.sent_bytes);
    visit("seconds", self.seconds);
  }
};

/// Storage that has a name as a node had it, before anything started there.
struct RecordedNodeStorage {
  std::string node;
  std::string name;
  std::string path;
  bool writes = false;
  std::string type;  ///< of its file system
  /// How it is known to be that of the other nodes: `marker`, `device`, `compared`; `unproven`;
  /// `alone`, where there was no other.
  std::string how;
  friend bool operator==(const RecordedNodeStorage&, const RecordedNodeStorage&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("node", self.node);
    visit("name", self.name);
    visit("path", self.path);
    visit("writes", self.writes);
    visit("type", self.type);
    visit("how", self.how);
  }
};

/// `ranks.json`: of a run on several nodes; written at each change.
struct RecordedRanks {
  std::vector<RecordedJobAttempt> attempts;
  std::vector<RecordedNodeData> data{};  ///< of each node that took part, in the order they came
  std::vector<RecordedNodeStorage> storage{};  ///< the same, as it was last proven
  friend bool operator==(const RecordedRanks&, const RecordedRanks&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("attempts", self.attempts);
    visit("data", self.data);
    visit("storage", self.storage);
  }
};

}  // namespace mlenv
