#pragma once
// A job's controller as a program of its own: what a batch system starts in an allocation.
#include "base/files.hpp"

namespace mlenv::job {

/// The job of FOLDER/job (plan_file.hpp), to its end, on the nodes of the allocation that this
/// process is in; its ranks' output on our streams. Writes the id of its record to FOLDER/record as
/// soon as it has one, so that whoever submitted it finds it. The job's status; what mlenv could
/// not do is told on standard error (125). `version`: of this program.
int lead(const fs::path& folder, std::string_view version);

}  // namespace mlenv::job
