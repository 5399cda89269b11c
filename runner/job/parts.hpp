#pragma once
// What a person says of a job: in job.yaml, by options, or both, options before the file. What is
// not said is nothing.
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipes/storage_names.hpp"
#include "runner/job/job.hpp"

namespace mlenv::job {

struct JobParts {
  std::optional<std::string> name;
  std::optional<std::string> image;
  std::optional<std::vector<std::string>> command;
  std::optional<NodeCount> nodes;
  std::optional<std::uint64_t> ranks_per_node;
  std::optional<std::uint64_t> gpus_per_node;
  std::optional<Strategy> strategy;
  std::optional<Framework> framework;
  std::optional<bool> chief;  ///< these four of `roles`
  std::optional<std::uint64_t> servers;
  std::optional<bool> evaluator;
  std::optional<bool> async;
  std::optional<std::string> interface;
  std::optional<std::string> pull_from;
  std::map<std::string, std::string> env;
  StorageNames storage;  ///< that mounts may name
  std::vector<Mount> mounts;
  std::optional<std::string> workdir;
  std::optional<std::uint64_t> restarts;
  std::optional<std::chrono::milliseconds> rescale_interval;
  std::optional<std::chrono::milliseconds> deadline;
  std::optional<std::chrono::milliseconds> grace;
  std::optional<bool> preflight;
  std::optional<std::chrono::milliseconds> stall_timeout;
  std::optional<Mount> checkpoints;
  std::vector<std::string> after;  ///< runs that are to end well before, as they are called
  std::optional<std::uint64_t> memory_bytes;
  std::optional<double> cpus;
  std::optional<std::uint64_t> shm_bytes;
  std::optional<bool> deterministic;
  std::optional<std::uint64_t> seed;  ///< of `deterministic`

  bool names_roles() const { return chief || servers || evaluator || async; }
};

/// What `options` say in place of what `file` says; of variables by name, of mounts by target, and
/// of roles each by itself.
JobParts merged(JobParts file, const JobParts& options);

/// The job that they describe; `options` of a rank beyond resources are left for the caller, as is
/// the framework that the image has, where none is named. A strategy that is not named is that of
/// the roles, where there are such, and allreduce without. Throws `bad-job` (usage) for roles with
/// another strategy than parameter-server. Image and command may be missing.
Job job_of(const JobParts& parts);

/// `SOURCE:/TARGET[:ro]` on the nodes: whether there is such a source, each of them tells. A
/// relative source is one in `folder`, one that names storage is below what `storage` has. Throws
/// `bad-mount`, `unknown-storage` (usage).
Mount mount_of_nodes(std::string_view text, const fs::path& folder,
                     const StorageNames& storage = {});

}  // namespace mlenv::job
