#pragma once
// What exactly the job is, once the image's settings and the person's are put together.
#include <string>
#include <vector>

#include "runner/local/machine.hpp"
#include "runner/local/run.hpp"

namespace mlenv {

/// PATH where nobody says more.
inline constexpr const char* kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Throws `no-command` when neither the person nor the image names one.
std::vector<std::string> job_argv(const LocalRun& run);

/// Sorted by name: this machine's variables, over them the image's, HOME and PATH where it has
/// none, TERM with a terminal, those of `run.devices`, and over all `run.env` (a bare `K` takes the
/// caller's value, or is left out; the last word on a name counts).
std::vector<std::string> job_environment(const LocalRun& run,
                                         const std::vector<std::string>& machine,
                                         const Variables& caller, const std::string& home);

/// Where the project is mounted, and the job starts when the person says nothing else.
std::string project_folder(const LocalRun& run);
/// Absolute. A relative `run.workdir` is relative to the image's; throws `bad-workdir` (usage) when
/// it leads out of that.
std::string job_workdir(const LocalRun& run);
/// The project, then the person's.
std::vector<Mount> job_mounts(const LocalRun& run);

}  // namespace mlenv
