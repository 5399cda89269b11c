#pragma once
// What exactly the job is, once the image's settings and the person's are put together.
#include <optional>
#include <string>
#include <vector>

#include "runner/local/bundle.hpp"
#include "runner/local/image_root.hpp"
#include "runner/local/machine.hpp"

namespace mlenv {

/// Throws `no-command` when neither the person nor the image names one.
std::vector<std::string> job_argv(const LocalRun& run);

/// Sorted by name: this machine's variables, over them the image's, HOME and PATH where it has
/// none, TERM with a terminal, and over all `run.env` (a bare `K` takes the caller's value, or is
/// left out).
std::vector<std::string> job_environment(const LocalRun& run,
                                         const std::vector<std::string>& machine,
                                         const Environment& caller, const std::string& home);

/// Where the project is mounted, and the job starts when the person says nothing else.
std::string project_folder(const LocalRun& run);
/// Absolute. A relative `run.workdir` is relative to the image's.
std::string job_workdir(const LocalRun& run);
/// The project, then the person's.
std::vector<Mount> job_mounts(const LocalRun& run);

/// Why a shell would not start it: 127 not found, 126 found but not executable.
struct CannotRun {
  int status = 127;
  std::string why;
};
/// Looks argv[0] up as execvp(3) does, in the image and in what is mounted over it. nullopt: it can
/// run, as far as can be seen from outside.
std::optional<CannotRun> cannot_run(const Bundle& bundle, const ImageRoot& image);

}  // namespace mlenv
