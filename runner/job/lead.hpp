#pragma once
// A job's controller as a program of its own: what a batch system starts in an allocation.
#include "base/files.hpp"

namespace mlenv::job {

/// The job of FOLDER/job (plan_file.hpp), to its end, on the nodes of the allocation that this
/// process is in; of an array, that of the variation with the number that Slurm gave it. Its ranks'
/// output on our streams. Writes the id of its record to the file `record` of its folder
/// (job_folders.hpp) as soon as it has one, so that whoever submitted it finds it. The job's
/// status; what mlenv could not do is told on standard error (125). `version`: of this program.
int lead(const fs::path& folder, std::string_view version);

}  // namespace mlenv::job
