#pragma once
// What a run declares as its result (`--outputs`): files and folders in its mounts, whose digests
// its record keeps.
#include <optional>
#include <string>
#include <vector>

#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv {

struct PlacedOutput {
  std::string path;       ///< as it was asked for
  std::string target;     ///< in the container, absolute
  std::size_t mount = 0;  ///< index in job_mounts(run)
  std::string within;     ///< path below that mount's source; empty: the source itself
  fs::path on_host;
  fs::path source;  ///< of that mount
};

/// Where they lie. A relative path is relative to the folder that the command starts in. Throws
/// `bad-run-output` (usage) for what is in no writable mount, so that it would be gone after the
/// run, lies behind a link, or was said twice.
std::vector<PlacedOutput> placed_outputs(const LocalRun& run,
                                         const std::vector<std::string>& paths);

/// For the record's start: whether each is there already.
std::vector<DeclaredOutput> declared(const LocalRun& run, const std::vector<PlacedOutput>& outputs);

/// Reads what lies at `on_host`, of which the record speaks as `path`. Links are not followed; what
/// is neither file nor link nor folder, and what cannot be read, makes the whole `unreadable`.
RecordedOutput read_output(const std::string& path, const fs::path& on_host);
std::vector<RecordedOutput> read_outputs(const std::vector<PlacedOutput>& outputs);

}  // namespace mlenv
