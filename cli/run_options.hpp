#pragma once
// What `mlenv run` takes beside image, command, mounts, variables and devices: words in, values
// out.
#include <string>
#include <string_view>
#include <vector>

#include "runner/local/options.hpp"
#include "runner/local/run.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): theirs
class App;
}  // namespace CLI

namespace mlenv::cli {

struct RunWords {
  std::vector<std::string> env_files, mounts, tmpfs, groups, caches, ports, ulimits, labels;
  std::string user, hostname, network, memory, memory_swap, cpus, cpuset, pids, shm, disk;
  bool read_only = false;
  bool rdma = false;
};

/// Declares them.
void declare_run_options(CLI::App& app, RunWords& into);

/// Names of those that take the next word, `-p` and `--publish` alike.
const std::vector<std::string_view>& run_options_with_words();

struct RunChoice {
  JobOptions options;
  std::vector<Mount> mounts;     ///< of `--mount` and `--cache`
  std::vector<std::string> env;  ///< of `--env-file` and `--cache`
};

/// Reads files of variables and makes folders of caches; else looks at nothing. Throws `usage`,
/// `bad-mount`, `bad-env-file`.
RunChoice parse_run_words(const RunWords& words);

/// What of a run is not as by default, as it would be asked for: `--memory 1073741824 --network
/// none`; empty: nothing.
std::string options_text(const JobOptions& options);

}  // namespace mlenv::cli
