#include "runner/job/parts.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.hpp"
#include "runner/job/words.hpp"

namespace mlenv::job {
namespace {

template <class T>
void put(std::optional<T>& into, const std::optional<T>& from) {
  if (from) into = from;
}

template <class T>
void take_if_given(T& into, const std::optional<T>& from) {
  if (from) into = *from;
}

}  // namespace

JobParts merged(JobParts file, const JobParts& options) {
  put(file.name, options.name);
  put(file.image, options.image);
  put(file.command, options.command);
  put(file.nodes, options.nodes);
  put(file.ranks_per_node, options.ranks_per_node);
  put(file.gpus_per_node, options.gpus_per_node);
  put(file.strategy, options.strategy);
  put(file.framework, options.framework);
  put(file.chief, options.chief);
  put(file.servers, options.servers);
  put(file.evaluator, options.evaluator);
  put(file.async, options.async);
  put(file.interface, options.interface);
  put(file.pull_from, options.pull_from);
  for (const auto& [name, value] : options.env) file.env[name] = value;
  for (const Mount& mount : options.mounts) {
    std::erase_if(file.mounts, [&](const Mount& one) { return one.target == mount.target; });
    file.mounts.push_back(mount);
  }
  put(file.workdir, options.workdir);
  put(file.restarts, options.restarts);
  put(file.rescale_interval, options.rescale_interval);
  put(file.deadline, options.deadline);
  put(file.grace, options.grace);
  put(file.preflight, options.preflight);
  put(file.stall_timeout, options.stall_timeout);
  put(file.checkpoints, options.checkpoints);
  put(file.memory_bytes, options.memory_bytes);
  put(file.cpus, options.cpus);
  put(file.shm_bytes, options.shm_bytes);
  return file;
}

Job job_of(const JobParts& parts) {
  Job job;
  take_if_given(job.name, parts.name);
  take_if_given(job.image, parts.image);
  take_if_given(job.argv, parts.command);
  take_if_given(job.nodes, parts.nodes);
  take_if_given(job.ranks_per_node, parts.ranks_per_node);
  job.gpus_per_node = parts.gpus_per_node;
  const bool roles = parts.names_roles();
  job.strategy = parts.strategy.value_or(roles ? Strategy::parameter_server : Strategy::allreduce);
  if (roles && job.strategy != Strategy::parameter_server) {
    throw usage_error("bad-job",
                      "`{}` has no roles: chief, servers, evaluator and async are of `{}`",
                      name_of(job.strategy), name_of(Strategy::parameter_server))
        .hint(fmt::format("`--strategy {}`, or leave the roles out",
                          name_of(Strategy::parameter_server)));
  }
  take_if_given(job.framework, parts.framework);
  // Sums by MPI are started by MPI.
  if (job.strategy == Strategy::mpi) job.framework = Framework::mpi;
  if (job.strategy == Strategy::allreduce && job.framework == Framework::mpi) {
    job.strategy = Strategy::mpi;
  }
  take_if_given(job.roles.chief, parts.chief);
  take_if_given(job.roles.servers, parts.servers);
  take_if_given(job.roles.evaluator, parts.evaluator);
  take_if_given(job.roles.async, parts.async);
  take_if_given(job.interface, parts.interface);
  take_if_given(job.pull_from, parts.pull_from);
  for (const auto& [name, value] : parts.env) job.env.push_back(fmt::format("{}={}", name, value));
  job.mounts = parts.mounts;
  take_if_given(job.workdir, parts.workdir);
  take_if_given(job.restarts, parts.restarts);
  take_if_given(job.rescale_interval, parts.rescale_interval);
  job.deadline = parts.deadline;
  take_if_given(job.grace, parts.grace);
  take_if_given(job.preflight, parts.preflight);
  job.stall_timeout = parts.stall_timeout;
  job.checkpoints = parts.checkpoints;
  job.options.limits.memory_bytes = parts.memory_bytes;
  job.options.limits.cpus = parts.cpus;
  job.options.shm_bytes = parts.shm_bytes;
  return job;
}

Mount mount_of_nodes(std::string_view text, const fs::path& folder, const StorageNames& storage) {
  std::string_view rest = text;
  const bool read_only = rest.ends_with(":ro");
  if (read_only || rest.ends_with(":rw")) rest.remove_suffix(3);
  const std::size_t colon = rest.find(':');
  const std::string_view target = colon == std::string_view::npos ? "" : rest.substr(colon + 1);
  if (colon == 0 || target.find(':') != std::string_view::npos) {
    throw usage_error("bad-mount", "`{}` is not a mount", text)
        .hint("write SOURCE:/TARGET or SOURCE:/TARGET:ro");
  }
  Mount mount = Mount::of(text, "/", target, read_only);  // there is one: what it says of targets
  const std::string_view source = rest.substr(0, colon);
  if (names_storage(source)) {
    StoragePlace place = storage_place(source, storage);
    mount.source = std::move(place.path);
    mount.storage = std::move(place.name);
  } else {
    mount.source = fs::absolute(folder / source).lexically_normal();
  }
  return mount;
}

}  // namespace mlenv::job
