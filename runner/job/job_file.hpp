#pragma once
// job.yaml: keys and their meaning are in docs/jobs.md, "job.yaml".
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "runner/job/parts.hpp"

namespace mlenv::job {

/// Throws one `job-invalid` (usage) that lists every mistake as `file:line:col: …` with the line
/// and a caret: unknown keys (nearest match), duplicate keys, wrong types, bad values. Relative
/// sources of mounts are from the file's folder. `known`: storage that has a name; the file's own
/// comes over it.
JobParts parse_job_file(std::string_view text, const fs::path& shown_path,
                        const StorageNames& known = {});
JobParts read_job_file(const fs::path& path, const StorageNames& known = {});

/// runner/job/job.schema.json, as it was when mlenv was built.
std::string_view job_schema();
/// Every key that the reader knows, and so does the schema; those of `roles` and `resources`.
std::vector<std::string_view> job_keys();
std::vector<std::string_view> role_keys();
std::vector<std::string_view> resource_keys();

}  // namespace mlenv::job
