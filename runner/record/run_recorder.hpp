#pragma once
// Writes a run's record while it runs. Nothing here delays the run, and a record that cannot be
// written (a full disk) never stops one.
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "runner/local/life.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

class Error;

/// What of a record its maker knows already.
struct KnownState {
  std::optional<CodeState> code{};  ///< as of one that was taken from its commit
  std::string host{};               ///< render_facts(); empty: unknown
};

class RunRecorder {
 public:
  /// Makes the record in `folder` (STORE/runs) and starts the process that reads beside the run
  /// what is not `known`: the state of the code at once, the facts of the host when the command
  /// runs. Where nothing is left to read there is no such process. Fills in what a
  /// start needs beyond what the caller knows: id, host, boot, time, version. Throws `no-space`,
  /// `io` and their kin, and `name-taken` where a run goes on that has its name.
  RunRecorder(const fs::path& folder, RunStart start, const KnownState& known = {});
  /// Goes on with the record `id` of a run that was put back into a batch system's queue: where it
  /// runs now is as in `now`, the rest as it was. Its end goes, if it has one. Its time counts from
  /// its first start. `held`: of hold_record(). Throws `damaged-run`.
  RunRecorder(const fs::path& folder, const std::string& id, FileLock held, const RunStart& now);
  RunRecorder(const RunRecorder&) = delete;
  RunRecorder& operator=(const RunRecorder&) = delete;
  ~RunRecorder() = default;

  const std::string& id() const { return start_.id; }
  const fs::path& folder() const { return folder_; }
  /// It waits for other runs, and is `queued`; or no more, and its time counts from now on. Throws
  /// as the constructor does.
  void waiting(bool waits);
  /// The command runs: reading of facts no longer delays its start.
  void started();
  /// Of several. Throws as the constructor does.
  void attempt_ended(const AttemptEnd& attempt);
  /// Writes the end, with what `outputs` gives, which is asked when the run's time is taken. Throws
  /// as the constructor does.
  void ended(const RunOutcome& outcome,
             const std::function<std::vector<RecordedOutput>()>& outputs = {},
             std::optional<RecordedLog> log = std::nullopt);
  /// The same when mlenv itself gave up, with the status that it ends with.
  void gave_up(const Error& error, int status, std::optional<RecordedLog> log = std::nullopt);

 private:
  struct Before {  ///< of the children that this process had before the run
    double user_seconds = 0;
    double system_seconds = 0;
    std::uint64_t read_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t largest_process_bytes = 0;
  };
  static Before children_so_far();
  RunUsage usage() const;
  void publish(const fs::path& folder, std::chrono::system_clock::time_point now);
  /// Time and use up to now.
  void measure(RunEnd& end) const;
  void write_end(const RunEnd& end) const;
  void start_reader(const KnownState& known);
  void write_host(const std::string& facts) const;

  RunStart start_;
  fs::path folder_;
  bool known_code_ = false;
  std::optional<FileLock> held_;
  Fd reader_;  ///< to the process that reads; closed once that was told to go on
  std::chrono::steady_clock::time_point began_;
  Before before_;
  RecordedAttempts attempts_;
};

/// The lock of a record that is there, within so long: whoever held it may be about to be gone.
/// nullopt where there is no such record, or somebody holds it still.
std::optional<FileLock> hold_record(const fs::path& folder, const std::string& id,
                                    std::chrono::milliseconds deadline);

/// An id as runs have them, by this time.
std::string new_run_id(std::chrono::system_clock::time_point now);

/// The process that reads beside a run: main() calls this first and returns its value when it is
/// engaged (`mlenv __record FOLDER [PROJECT OUTPUT…]`). nullopt: this is an ordinary start. What
/// programs say of themselves is remembered in the folder that `memory` gives, if it gives one.
std::optional<int> record_main(int argc, char** argv, const std::function<fs::path()>& memory);

}  // namespace mlenv
