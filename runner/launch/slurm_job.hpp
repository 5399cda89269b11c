#pragma once
// A job of Slurm's from outside: submitted, looked at, cancelled. Asks the programs of Slurm, as a
// person does.
#include <chrono>
#include <csignal>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/process.hpp"

namespace mlenv {
class Error;
}  // namespace mlenv

namespace mlenv::job {

struct SlurmState {
  std::string state;   ///< `PENDING`, `RUNNING`, `COMPLETED`, `NODE_FAIL` …; empty: it is unknown
  std::string reason;  ///< why it waits, or ended; empty: none
  std::string nodes;   ///< on which it runs or ran
  std::uint64_t restarts = 0;
  Exit exit;  ///< of the batch script
  /// It neither waits nor runs, and will not.
  bool is_over() const;
  /// The status to end with: that of the script; where there is none and it went wrong 128 +
  /// `cancelled_by` of one that was cancelled, also before it began, 124 at the end of its time,
  /// else 1.
  int status(int cancelled_by = SIGTERM) const;
  friend bool operator==(const SlurmState&, const SlurmState&) = default;
};

/// What `scontrol show job --oneliner` prints.
SlurmState parse_scontrol(std::string_view line);
/// What `sacct --parsable2 --noheader --format=State,ExitCode,NodeList` prints of one job.
std::optional<SlurmState> parse_sacct(std::string_view line);

/// Runs a program of Slurm's, within a minute. Throws `no-slurm` where there is none.
Captured ask_program(std::vector<std::string> words);

/// sbatch's id of the job. Throws `no-slurm` with what it said.
std::string submit_to_slurm(const fs::path& script);
/// Nullopt where no daemon answers just now. Throws `no-slurm` where it knows no such job.
std::optional<SlurmState> ask_slurm(const std::string& id);
/// A job of this user's that Slurm's queue has: it waits or runs.
struct QueuedScript {
  std::string id;  ///< of an array that of all of it
  std::string state;
  friend bool operator==(const QueuedScript&, const QueuedScript&) = default;
};
/// By the path of the script that each was submitted as.
using ScriptQueue = std::map<std::string, QueuedScript>;
/// What `squeue --noheader --format=%F|%T|%o` prints.
ScriptQueue parse_script_queue(std::string_view text);
/// Nullopt where it cannot be asked just now, or there is no squeue.
std::optional<ScriptQueue> ask_slurm_scripts();
/// Whether that is what ask_slurm threw, and not that Slurm cannot be asked at all.
bool says_unknown(const Error& error);
/// SIGTERM to the batch script and every step; SIGKILL after the site's KillWait. Throws
/// `no-slurm`.
void cancel_in_slurm(const std::string& id);
/// SIGKILL to the batch script and every step, at once. Throws `no-slurm`.
void kill_in_slurm(const std::string& id);
/// Into the queue for good: a job that was submitted with `--hold`. Throws `no-slurm`.
void release_in_slurm(const std::string& id);
/// Back into the queue, from within the job: whoever calls it is ended. Throws `no-slurm`, as where
/// the job or the site allows no requeues.
void requeue_in_slurm(const std::string& id);
/// `USR1`, `USR2` … to the batch script alone, which passes it on to the ranks. Throws `no-slurm`.
void signal_in_slurm(const std::string& id, const std::string& signal);

/// How long to wait before Slurm is asked again: a second where something has happened, up to half
/// a minute where nothing does, since its daemon serves all jobs of a cluster.
class AskingPace {
 public:
  /// Something has happened that it will tell of.
  void hurry();
  /// It was asked, and the job's state was this; empty: it did not answer.
  void asked(const std::string& state);
  std::chrono::milliseconds wait() const { return wait_; }

 private:
  static constexpr std::chrono::milliseconds kLeast{1000};
  std::chrono::milliseconds wait_ = kLeast;
  std::string last_;
};

}  // namespace mlenv::job
