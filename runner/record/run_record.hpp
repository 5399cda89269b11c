#pragma once
// What happened in a run: which image, which command, on which host, with which code, and how it
// ended. Schema mlenv.run/1, described in docs/run-records.md.
//
// A record is a folder STORE/runs/ID of files that are each written whole: `run.json` before the
// start, `end.json` after the end, and beside the run, by a process of its own, `code.json` and
// `host.json`; `waits` as long as it waits for other runs. Its lock `held` is held as long as the
// run's mlenv lives. So a record is there whatever happens to mlenv: one without an end whose lock
// nobody holds was killed.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/facts/facts.hpp"
#include "runner/job/agreement_table.hpp"
#include "runner/job/preflight.hpp"
#include "runner/local/options.hpp"
#include "runner/record/job_record.hpp"
#include "runner/record/run_environment.hpp"
#include "runner/vm/spec.hpp"

namespace mlenv {

struct RecordedImage {
  std::string name;    ///< as it was asked for: a name, a digest, a recipe
  std::string digest;  ///< of the manifest
  std::optional<std::string> lock_digest;
  friend bool operator==(const RecordedImage&, const RecordedImage&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("digest", self.digest);
    visit("lock_digest", self.lock_digest);
  }
};

struct RecordedMount {
  std::string source;
  std::string target;
  bool read_only = false;
  std::optional<std::string> storage{};  ///< its name, where the source was said by one
  friend bool operator==(const RecordedMount&, const RecordedMount&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("source", self.source);
    visit("target", self.target);
    visit("read_only", self.read_only);
    visit("storage", self.storage);
  }
};

/// `--deterministic`: the switches that were set, so that a later mlenv can tell its own from them.
struct RecordedDeterminism {
  std::uint64_t seed = 0;
  std::vector<RecordedVariable> variables;
  std::string python_layer;  ///< digest of the file that was mounted
  friend bool operator==(const RecordedDeterminism&, const RecordedDeterminism&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("seed", self.seed);
    visit("variables", self.variables);
    visit("python_layer", self.python_layer);
  }
};

/// A file or folder in the mounts that the run declares as its result (`--outputs`).
struct DeclaredOutput {
  std::string path;      ///< as it was asked for
  std::string target;    ///< in the container, absolute
  bool existed = false;  ///< before the run
  /// Below the project's folder; such paths are no part of the code's state.
  std::optional<std::string> in_project;
  friend bool operator==(const DeclaredOutput&, const DeclaredOutput&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("target", self.target);
    visit("existed", self.existed);
    visit("in_project", self.in_project);
  }
};

/// One variation of a matrix (`--matrix`).
struct RecordedVariation {
  std::string matrix;        ///< id of it, the same for all
  std::uint64_t number = 1;  ///< of this one, from 1
  std::uint64_t of = 1;      ///< so many there are
  std::vector<RecordedVariable> values;
  std::string folder;   ///< its own, on this machine
  std::string results;  ///< that of the matrix, which holds it; no part of the code's state
  friend bool operator==(const RecordedVariation&, const RecordedVariation&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("matrix", self.matrix);
    visit("number", self.number);
    visit("of", self.of);
    visit("values", self.values);
    visit("folder", self.folder);
    visit("results", self.results);
  }
};

/// The writable layer of a run with `--keep` or `--from`: STORE/kept/ID (kept_layers.hpp).
struct RecordedLayer {
  std::string id;
  std::optional<std::string> from;  ///< the run whose layer it was; nothing: it was new
  bool kept = false;  ///< what the run wrote is in it; else it was only what the run started from
  std::uint64_t generation = 0;  ///< so many runs had it to write before this one began
  friend bool operator==(const RecordedLayer&, const RecordedLayer&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("from", self.from);
    visit("kept", self.kept);
    visit("generation", self.generation);
  }
};

/// `run.json`: all that is known when it starts.
struct RunStart {
  std::string id;
  std::string mlenv;    ///< version of the program
  std::string host;     ///< its name
  std::string boot_id;  ///< of the kernel: another one later means that the machine was restarted
  std::string started;  ///< UTC, RFC 3339 with milliseconds
  RecordedImage image;
  std::vector<std::string> argv;       ///< empty: the image's own
  std::optional<std::string> workdir;  ///< nothing: the image's
  std::vector<RecordedVariable> env;   ///< what this run set over the image's
  std::vector<RecordedMount> mounts;   ///< besides the project
  std::vector<std::string> devices;    ///< CDI's names: `nvidia.com/gpu=0`
  JobOptions options;                  ///< limits, network, user and the like
  bool checked = true;                 ///< `mlenv check`'s verdict was asked, and let it start
  std::optional<std::string> project;  ///< folder of this machine
  std::optional<std::string> runtime;  ///< nothing: the first that is there
  std::optional<std::string> name;     ///< that no other run had as long as this one went on
  bool detached = false;               ///< in the background, its output kept
  std::optional<double> timeout_seconds;
  std::string restart = "no";  ///< as it was written: `on-failure:3`
  std::optional<RecordedDeterminism> deterministic;
  std::vector<DeclaredOutput> outputs;
  std::optional<std::string> reproduces;  ///< id of the run that this one repeats
  std::optional<RecordedVariation> variation;
  std::optional<RecordedRank> job;       ///< it is a rank of one on several nodes
  std::optional<RecordedLaunch> launch;  ///< it is one on several nodes
  std::optional<RecordedLayer> layer;    ///< nothing: what it wrote was thrown away
  std::vector<std::string> after;        ///< ids of the runs that were to end well before
  friend bool operator==(const RunStart&, const RunStart&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("mlenv", self.mlenv);
    visit("host", self.host);
    visit("boot_id", self.boot_id);
    visit("started", self.started);
    visit("image", self.image);
    visit("argv", self.argv);
    visit("workdir", self.workdir);
    visit("env", self.env);
    visit("mounts", self.mounts);
    visit("devices", self.devices);
    visit("options", self.options);
    visit("checked", self.checked);
    visit("project", self.project);
    visit("runtime", self.runtime);
    visit("name", self.name);
    visit("detached", self.detached);
    visit("timeout_seconds", self.timeout_seconds);
    visit("restart", self.restart);
    visit("deterministic", self.deterministic);
    visit("outputs", self.outputs);
    visit("reproduces", self.reproduces);
    visit("variation", self.variation);
    visit("job", self.job);
    visit("launch", self.launch);
    visit("layer", self.layer);
    visit("after", self.after);
  }
};

/// One stream of a detached run.
struct RecordedStream {
  std::uint64_t size_bytes = 0;
  std::string digest;  ///< of all of it, whether it was kept or not
  friend bool operator==(const RecordedStream&, const RecordedStream&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("size_bytes", self.size_bytes);
    visit("digest", self.digest);
  }
};

/// All that a detached run wrote.
struct RecordedLog {
  RecordedStream out;
  RecordedStream err;
  std::uint64_t lost_bytes = 0;  ///< that the disk had no room for
  friend bool operator==(const RecordedLog&, const RecordedLog&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("stdout", self.out);
    visit("stderr", self.err);
    visit("lost_bytes", self.lost_bytes);
  }
};

/// How one of several attempts ended.
struct RecordedAttempt {
  std::uint64_t number = 1;
  std::string ended;  ///< UTC, RFC 3339 with milliseconds
  double seconds = 0;
  std::uint64_t exit_code = 0;
  std::optional<std::uint64_t> signal;
  friend bool operator==(const RecordedAttempt&, const RecordedAttempt&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("number", self.number);
    visit("ended", self.ended);
    visit("seconds", self.seconds);
    visit("exit_code", self.exit_code);
    visit("signal", self.signal);
  }
};

/// `attempts.json`: of a run whose command was started more than once.
struct RecordedAttempts {
  std::uint64_t ended = 0;            ///< so many are over
  std::vector<RecordedAttempt> last;  ///< the newest of them, oldest first
  friend bool operator==(const RecordedAttempts&, const RecordedAttempts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ended", self.ended);
    visit("last", self.last);
  }
};

/// Of all processes of the run together, by the kernel's count (getrusage(2)).
struct RunUsage {
  double user_seconds = 0;          ///< processor time
  double system_seconds = 0;        ///< the same, in the kernel
  std::uint64_t read_bytes = 0;     ///< that the file system had to take from a device
  std::uint64_t written_bytes = 0;  ///< that it had to give to one
  /// Resident memory of the largest process. Unknown where mlenv itself, or an earlier child of it
  /// (a build before the run), was larger.
  Number largest_process_bytes;
  friend bool operator==(const RunUsage&, const RunUsage&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("user_seconds", self.user_seconds);
    visit("system_seconds", self.system_seconds);
    visit("read_bytes", self.read_bytes);
    visit("written_bytes", self.written_bytes);
    visit("largest_process_bytes", self.largest_process_bytes);
  }
};

/// Why mlenv itself gave up, before or during the run.
struct RunFailure {
  std::string code;  ///< docs/errors.md
  std::string message;
  friend bool operator==(const RunFailure&, const RunFailure&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("code", self.code);
    visit("message", self.message);
  }
};

struct RecordedFile {
  std::string path;  ///< below the output; empty: the output itself
  std::string kind;  ///< `file`, `link`
  std::uint64_t size_bytes = 0;
  std::string digest;  ///< of the content; of a link where it leads
  friend bool operator==(const RecordedFile&, const RecordedFile&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("kind", self.kind);
    visit("size_bytes", self.size_bytes);
    visit("digest", self.digest);
  }
};

/// A declared output as the run left it.
struct RecordedOutput {
  std::string path;  ///< as it was asked for
  std::string kind;  ///< `file`, `folder`, `link`, `absent`, `unreadable`
  /// Of a file its content's; of a folder that of a list of its files, as a recipe's `data` has it.
  std::optional<std::string> digest;
  std::uint64_t size_bytes = 0;  ///< of all files
  std::vector<RecordedFile> files;
  std::optional<std::string> why;  ///< it is unreadable
  friend bool operator==(const RecordedOutput&, const RecordedOutput&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("path", self.path);
    visit("kind", self.kind);
    visit("digest", self.digest);
    visit("size_bytes", self.size_bytes);
    visit("files", self.files);
    visit("why", self.why);
  }
};

/// `end.json`.
struct RunEnd {
  std::string ended;   ///< UTC, RFC 3339 with milliseconds
  double seconds = 0;  ///< from start to end, by a clock that nobody sets
  /// The command's own status, 128+n after signal n; 126 and 127 as a shell has them; 125 with
  /// `failure`.
  std::uint64_t exit_code = 0;
  std::optional<std::uint64_t> signal;
  bool out_of_memory = false;  ///< the kernel killed a process of it for want of memory
  std::optional<RunFailure> failure;
  RunUsage usage;
  std::optional<std::string> ended_by;  ///< `stop` (mlenv stop), `timeout`; nothing: by itself
  std::optional<RecordedLog> log;       ///< of a detached run
  std::vector<RecordedOutput> outputs;
  friend bool operator==(const RunEnd&, const RunEnd&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("ended", self.ended);
    visit("seconds", self.seconds);
    visit("exit_code", self.exit_code);
    visit("signal", self.signal);
    visit("out_of_memory", self.out_of_memory);
    visit("failure", self.failure);
    visit("usage", self.usage);
    visit("ended_by", self.ended_by);
    visit("log", self.log);
    visit("outputs", self.outputs);
  }
};

/// `code.json`: the project's git repository when the run started.
struct CodeState {
  Text commit;
  Text branch;
  /// Files that differ from the commit, or that git does not know and does not ignore; sorted.
  Texts changed;
  /// sha256 over those files' names and content (code_state.hpp). Two runs with the same commit and
  /// this digest had the same code.
  Text changed_digest;
  friend bool operator==(const CodeState&, const CodeState&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("commit", self.commit);
    visit("branch", self.branch);
    visit("changed", self.changed);
    visit("changed_digest", self.changed_digest);
  }
};

struct RunRecord {
  /// `queued` (it waits for others, or for its batch system), `running`; `done` (exit 0), `failed`
  /// (another status), `killed` (by a signal), `refused` (mlenv could not run it), `lost` (mlenv
  /// was killed, or the machine went down, before the end).
  std::string state;
  RunStart start;
  std::optional<RunEnd> end;
  std::optional<RecordedAttempts> attempts;  ///< nothing: the command was started once
  std::optional<RecordedRanks> ranks;        ///< of one on several nodes
  std::optional<job::Preflight> preflight;   ///< of one whose links were measured before
  std::optional<job::Agreement> agreement;   ///< of one whose nodes differ: as told last
  std::optional<VmUse> vm;        ///< nothing: it had this host's kernel, or has not ended
  std::optional<CodeState> code;  ///< nothing: not read yet, or cut off
  std::optional<Facts> facts;     ///< of the host; the same
  /// In a record that is handed over alone, and where the image was still in the store.
  std::optional<RunEnvironment> environment;
  friend bool operator==(const RunRecord&, const RunRecord&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("state", self.state);
    visit("start", self.start);
    visit("end", self.end);
    visit("attempts", self.attempts);
    visit("ranks", self.ranks);
    visit("preflight", self.preflight);
    visit("agreement", self.agreement);
    visit("vm", self.vm);
    visit("code", self.code);
    visit("host", self.facts);
    visit("environment", self.environment);
  }
};

/// mlenv.run/1 on one line, without the newline.
std::string render_run(const RunRecord& record);
/// The other way. Throws `bad-facts` or `facts-version` (usage); `shown` names the text.
RunRecord parse_run(std::string_view text, std::string_view shown);

// The files of a record; the same errors.
std::string render_run_start(const RunStart& start);
RunStart parse_run_start(std::string_view text, std::string_view shown);
std::string render_run_end(const RunEnd& end);
RunEnd parse_run_end(std::string_view text, std::string_view shown);
std::string render_attempts(const RecordedAttempts& attempts);
RecordedAttempts parse_attempts(std::string_view text, std::string_view shown);
std::string render_ranks(const RecordedRanks& ranks);
RecordedRanks parse_ranks(std::string_view text, std::string_view shown);
std::string render_vm_use(const VmUse& vm);
VmUse parse_vm_use(std::string_view text, std::string_view shown);
std::string render_code_state(const CodeState& code);
CodeState parse_code_state(std::string_view text, std::string_view shown);

}  // namespace mlenv
