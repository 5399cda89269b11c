#pragma once
// One node of a job, as its controller sees it: an agent (runner/node) at the other end of a pair
// of streams, whatever brought it there (ssh, srun, a process on this machine).
//
// Nothing here waits: requests are queued, answers are heard through NodeEvents from take() and
// send(), which the controller calls when poll(2) says so, and from tick(). An agent whose
// controller is silent for `LinkSettings::silence` ends its ranks and itself; a node that is
// silent as long is lost. Until an agent's first word its owner is the one to be patient. From then
// on a Beater, where there is one, says beats while whoever calls tick() is held up.
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "runner/facts/facts.hpp"
#include "runner/job/data_set.hpp"
#include "runner/local/run.hpp"
#include "runner/record/run_log.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {
class Store;
}  // namespace mlenv

namespace mlenv::job {

/// What brings bytes to an agent and back.
struct NodeStream {
  Fd to;    ///< its standard input
  Fd from;  ///< its standard output
};

struct LinkSettings {
  std::chrono::milliseconds beat{1000};     ///< each side says something at least so often
  std::chrono::milliseconds silence{6000};  ///< the other side is gone after so long
};

/// What a node says of itself when it is met.
struct NodeHello {
  std::string host;     ///< its name
  std::string version;  ///< of its mlenv
  std::string boot_id;
  std::string runtime;  ///< path of the OCI runtime; empty: it has none
  std::string clock;    ///< its time, UTC, RFC 3339 with milliseconds
  std::string store;    ///< folder of its store
  /// The same on nodes that share a store, and hardly ever on others (store_id.hpp).
  std::string store_id{};
  std::uint64_t free_bytes = 0;  ///< there
  /// Interfaces that are up, each with an address: `eth0` `10.0.0.3`.
  struct Interface {
    std::string name;
    std::string address;
    bool loopback = false;
    template <class Self, class Visit>
    static void fields(Self& self, Visit&& visit) {
      visit("name", self.name);
      visit("address", self.address);
      visit("loopback", self.loopback);
    }
  };
  std::vector<Interface> interfaces;
  /// So many GPUs a batch system has given to the job there; nothing: all are the node's to give.
  std::optional<std::uint64_t> given_gpus{};
  std::vector<std::uint16_t> ports;  ///< free ones, as many as were asked for
  std::string curl{};  ///< path of the program, for fetching from a registry; empty: it has none
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("host", self.host);
    visit("version", self.version);
    visit("boot_id", self.boot_id);
    visit("runtime", self.runtime);
    visit("clock", self.clock);
    visit("store", self.store);
    visit("store_id", self.store_id);
    visit("free_bytes", self.free_bytes);
    visit("interfaces", self.interfaces);
    visit("given_gpus", self.given_gpus);
    visit("ports", self.ports);
    visit("curl", self.curl);
  }
};

/// One rank as its node is to run it.
struct RankStart {
  std::uint64_t rank = 0;
  /// image, argv, env, mounts, options …: recorded on the node as given, by the node's own run id.
  RunStart record;
  LocalRun run;                  ///< without trees, scratch, fds: those are the node's
  bool code_as_project = false;  ///< the job's code (send_code) is what LocalRun::project is
  std::uint64_t most_log_bytes = 0;
  std::string gpus{};  ///< of its node: a word of `--gpus`, or `auto` (node_gpus.hpp); empty: none
  /// Lines for /etc/hosts, before those of the node; empty: none.
  std::string hosts{};
  /// Of a job by MPI: its nodes (mpi::render_hosts); empty: it is none.
  std::string mpi_hosts{};
};

/// How a rank ended.
struct RankEnd {
  std::uint64_t exit_code = 0;
  std::optional<std::uint64_t> signal;
  bool out_of_memory = false;
  std::optional<RunFailure> failure;  ///< mlenv could not run it
  std::string record;                 ///< mlenv.run/1 of it, as the node has it; may be empty
  /// Why its node, not its controller, had it end: its status says nothing of the command. Empty:
  /// it did not.
  std::string ended_by_node{};
};

class DataLists;
struct FetchPiece;
struct OfferedBlob;
struct Want;
struct PieceArrived;
struct PieceFailed;
struct BlobSpoilt;
struct UseRegistry;
struct FetchRange;
struct RangeEnded;
/// What a rank has used since it started, and what it does at this moment; told every few seconds.
struct RankUse {
  double cpu_seconds = 0;     ///< of all its processes
  double queued_seconds = 0;  ///< its threads were ready to run and had no processor
  std::uint64_t threads = 0;
  bool stopped = false;    ///< by a signal: all of its processes
  std::string waits_for;   ///< watch::name_of(Wait) of the threads that lead; `running`
  std::string waits_at{};  ///< a path or an address; may be empty
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("cpu_seconds", self.cpu_seconds);
    visit("queued_seconds", self.queued_seconds);
    visit("threads", self.threads);
    visit("stopped", self.stopped);
    visit("waits_for", self.waits_for);
    visit("waits_at", self.waits_at);
  }
};

struct NodeEvents {
  std::function<void(const NodeHello&)> met{};
  /// Bytes of images and code that were sent and are to be sent.
  std::function<void(std::uint64_t sent, std::uint64_t all)> sending{};
  /// The node has the image, each layer verified against its digest and unpacked; `digest` is what
  /// the node itself computed of the manifest.
  std::function<void(const std::string& digest)> image_ready{};
  std::function<void(const std::string& digest)> code_ready{};
  /// What it lacks of the image that was offered. Without it all of that is sent to the node from
  /// here; with it the owner sees to that (send_piece, fetch), and hears what came of it.
  std::function<void(const Want&)> lacking{};
  std::function<void(std::uint16_t port)> serving{};  ///< 0: it cannot serve others
  std::function<void(const PieceArrived&)> arrived{};
  std::function<void(const PieceFailed&)> not_fetched{};
  std::function<void(const BlobSpoilt&)> spoilt{};
  std::function<void(const RangeEnded&)> range_ended{};
  std::function<void(const DataPlace&)> data_at{};  ///< it has that one of send_data
  std::function<void(const Facts&)> facts{};
  std::function<void(const std::vector<std::uint16_t>&)> ports{};
  std::function<void(std::uint64_t rank, const std::string& run_id)> started{};
  /// A line as it lies in the node's log (run_log.hpp).
  std::function<void(std::uint64_t rank, const std::string& line)> line{};
  std::function<void(std::uint64_t rank, const RankUse&)> use{};
  std::function<void(std::uint64_t rank, const RankEnd&)> ended{};
  /// What a link test gave (link_test.hpp); empty: what measures has ended.
  std::function<void(const std::string& answer)> link_tested{};
  /// What a storage test gave (storage_test.hpp); empty: what looks at storage has ended.
  std::function<void(const std::string& answer)> storage_tested{};
  /// What the node could not do, and why; `during` is the request: `image`, `code`, `start` …
  std::function<void(const std::string& during, const Error&)> failed{};
  /// The agent is gone, or silent: last of all.
  std::function<void(const std::string& why)> lost{};
};

class Beater;

class NodeLink {
 public:
  /// `beater` outlives it.
  NodeLink(NodeStream stream, const LinkSettings& settings, NodeEvents events,
           Beater* beater = nullptr);
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;
  ~NodeLink();  ///< closes the streams: the agent kills what still runs

  int read_fd() const;
  int write_fd() const;
  bool wants_to_write() const;
  void take();  ///< there is something to read
  void send();  ///< there is room to write
  void tick();  ///< at least once a beat

  /// First of all.
  void meet(const std::string& job_id, std::size_t ports);
  void ask_facts();
  void ask_ports(std::size_t count);
  /// The node takes from us what its store lacks of the image of this manifest digest.
  /// `names`: that it is to have there.
  void send_image(Store& store, const std::string& digest,
                  const std::vector<std::string>& names = {});
  /// The node gives pieces of images to others that know the token: serving() follows.
  void serve_peers(const std::string& token, const std::string& address);
  /// The node fetches a piece of what it lacks from another one.
  void fetch(const FetchPiece& piece);
  /// From now on layers may be had there: fetch(FetchRange). For nodes with curl alone.
  void use_registry(const UseRegistry& registry);
  void fetch(const FetchRange& range);
  /// We send one to it.
  void send_piece(Store& store, const OfferedBlob& blob, std::size_t piece);
  /// How many of these have not left yet.
  std::size_t pieces_waiting() const;
  /// A blob of `store` that is an archive of the job's code (job/code.hpp).
  void send_code(Store& store, const std::string& digest);
  /// The node makes sure that it has these, and is sent what it lacks of those that are staged;
  /// data_at() follows for each. `lists`, which all links of a job share, outlives the link.
  void send_data(Store& store, DataLists& lists, const std::vector<DataSet>& sets);
  /// Of what is being sent of them; nothing: none is.
  struct DataSent {
    std::string name;
    std::uint64_t sent = 0;
    std::uint64_t all = 0;
  };
  std::optional<DataSent> data_sent() const;
  /// As LinkTest has it; link_tested() follows, unless it is empty.
  void link_test(const std::string& request);
  /// As TestStorage has it; storage_tested() follows, unless it is empty.
  void test_storage(const std::string& request);
  void start(const RankStart& rank);
  void signal(std::uint64_t rank, int number);
  /// SIGTERM, and after `grace` SIGKILL; ended() follows.
  void stop(std::uint64_t rank, std::chrono::milliseconds grace);
  /// Nothing more: the agent takes away what it made for the job and ends; lost() follows.
  void bye();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mlenv::job
