#pragma once
// What must hold for any bytes given as a job.yaml: it is read, or refused as the person's mistake.
#include <stdexcept>
#include <string_view>

#include "base/error.hpp"
#include "runner/job/job_file.hpp"

namespace mlenv::fuzz {

/// True when it was read. Throws std::logic_error when a promise is broken.
inline bool one_job(std::string_view text) {
  try {
    const job::JobParts parts = job::parse_job_file(text, "/jobs/job.yaml");
    const job::Job made = job::job_of(job::merged(parts, {}));
    if (made.nodes.least == 0 || made.nodes.least > made.nodes.most || made.ranks_per_node == 0) {
      throw std::logic_error("a job without nodes or ranks was read");
    }
    for (const Mount& mount : made.mounts) {
      if (mount.source.is_relative() || !mount.target.starts_with('/')) {
        throw std::logic_error("a mount that leads anywhere was read");
      }
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() != Kind::usage || error.code() != "job-invalid") throw;
    return false;
  }
}

}  // namespace mlenv::fuzz
