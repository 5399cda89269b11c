#pragma once
// A job of Slurm's from outside: submitted, looked at, cancelled. Asks the programs of Slurm, as a
// person does.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "base/process.hpp"

namespace mlenv::job {

struct SlurmState {
  std::string state;   ///< `PENDING`, `RUNNING`, `COMPLETED`, `NODE_FAIL` …; empty: it is unknown
  std::string reason;  ///< why it waits, or ended; empty: none
  std::string nodes;   ///< on which it runs or ran
  std::uint64_t restarts = 0;
  Exit exit;  ///< of the batch script
  /// It neither waits nor runs, and will not.
  bool is_over() const;
  /// The status to end with: that of the script, or 1 where there is none and it went wrong.
  int status() const;
  friend bool operator==(const SlurmState&, const SlurmState&) = default;
};

/// What `scontrol show job --oneliner` prints.
SlurmState parse_scontrol(std::string_view line);
/// What `sacct --parsable2 --noheader --format=State,ExitCode,NodeList` prints of one job.
std::optional<SlurmState> parse_sacct(std::string_view line);

/// sbatch's id of the job. Throws `no-slurm` with what it said.
std::string submit_to_slurm(const fs::path& script);
/// Nullopt where no daemon answers just now. Throws `no-slurm` where it knows no such job.
std::optional<SlurmState> ask_slurm(const std::string& id);
/// SIGTERM to the batch script and every step; SIGKILL after the site's KillWait. Throws
/// `no-slurm`.
void cancel_in_slurm(const std::string& id);

}  // namespace mlenv::job
