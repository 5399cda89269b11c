#include "cli/run_options.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_caches.hpp"
#include "cli/usage.hpp"
#include "runner/local/env_file.hpp"
#include "runner/local/option_words.hpp"

namespace mlenv::cli {
namespace {

std::vector<std::string> file_variables(const std::string& file) {
  const auto unreadable = [&](std::string why) {
    return usage_error("bad-env-file", "cannot read the file of variables `{}`", file)
        .because(std::move(why));
  };
  std::error_code error;
  if (fs::is_directory(file, error)) throw unreadable("it is a folder");
  try {
    return parse_env_file(read_named_file(file, size_limit::kEnvFile), file);
  } catch (const Error& problem) {
    if (problem.code() == "bad-env-file") throw;
    throw unreadable(problem.frames().back());
  }
}

std::string network_of(const RunWords& words) {
  const bool has_ports = !words.ports.empty();
  if (words.network.empty()) return has_ports ? "private" : "host";
  if (has_ports && words.network != "private") {
    throw usage_error("usage",
                      "`--publish` needs a private network, and `--network {}` is asked for",
                      words.network)
        .hint(words.network == "host" ? "leave `-p` out: on the host's network every port of the "
                                        "command is one of this machine"
                                      : "leave `--network` out");
  }
  return words.network;
}

JobLimits limits_of(const RunWords& words) {
  JobLimits limits;
  if (!words.memory.empty()) limits.memory_bytes = parse_memory(words.memory);
  if (!words.memory_swap.empty()) parse_memory_swap(words.memory_swap, limits);
  if (!words.cpus.empty()) limits.cpus = parse_cpus(words.cpus);
  if (!words.cpuset.empty()) limits.cpuset = parse_cpuset(words.cpuset);
  if (!words.pids.empty()) limits.pids = parse_pids(words.pids);
  return limits;
}

void add_mounts(const RunWords& words, RunChoice& into) {
  for (const std::string& word : words.mounts) {
    std::variant<Mount, MemoryFolder> mount = parse_mount(word);
    if (auto* const folder = std::get_if<MemoryFolder>(&mount)) {
      into.options.tmpfs.push_back(std::move(*folder));
    } else {
      into.mounts.push_back(std::get<Mount>(std::move(mount)));
    }
  }
  for (const std::string& word : words.tmpfs) into.options.tmpfs.push_back(parse_tmpfs(word));
}

}  // namespace

const std::vector<std::string_view>& run_options_with_words() {
  static const std::vector<std::string_view> names{"--env-file",   "--mount",
                                                   "--tmpfs",      "-u",
                                                   "--user",       "--group-add",
                                                   "--hostname",   "--cache",
                                                   "--network",    "-p",
                                                   "--publish",    "-m",
                                                   "--memory",     "--memory-swap",
                                                   "--cpus",       "--cpuset-cpus",
                                                   "--pids-limit", "--shm-size",
                                                   "--disk",       "--ulimit",
                                                   "--label"};
  return names;
}

void declare_run_options(CLI::App& app, RunWords& into) {
  const auto many = [&](const char* name, std::vector<std::string>& words, const char* meaning) {
    CLI::Option* const option = app.add_option(name, words, meaning);
    take_one_word(option);
    return option;
  };
  take_word_of(many("--env-file", into.env_files, "set the K=V of a file's lines; -e goes over it"),
               WordKind::file);
  many("--mount", into.mounts,
       "type=bind,source=SRC,target=DST[,readonly], or type=tmpfs,target=DST");
  many("--tmpfs", into.tmpfs, "a folder in memory: DST[:size=2g,mode=1777]");
  app.add_flag("--read-only", into.read_only, "the image cannot be written; /tmp and HOME can");
  app.add_option("-u,--user", into.user, "USER[:GROUP] by name or number; by default the image's");
  many("--group-add", into.groups, "one more group, by name or number");
  app.add_option("--hostname", into.hostname, "its host name; by default this machine's");
  many("--cache", into.caches, "show this machine's cache: huggingface, torch, pip, uv, or all");
  take_one_of(app.add_option("--network", into.network, "host (the default), none, or private"),
              {"host", "none", "private"});
  many("-p,--publish", into.ports,
       "[IP:]HOST:CONTAINER[/udp] of a private network; IP is 127.0.0.1");
  app.add_option("-m,--memory", into.memory, "at most so much memory: 512m, 16g");
  app.add_option("--memory-swap", into.memory_swap,
                 "of memory and swap together; -1: any; by default twice --memory");
  app.add_option("--cpus", into.cpus, "at most so much processor time: 1.5");
  app.add_option("--cpuset-cpus", into.cpuset, "only these processors: 0-3,8");
  app.add_option("--pids-limit", into.pids, "at most so many processes and threads");
  app.add_option("--shm-size", into.shm, "size of /dev/shm; by default half of the memory");
  app.add_option("--disk", into.disk,
                 "of --runtime vm: room for what it writes; by default what is free");
  many("--ulimit", into.ulimits, "NAME=SOFT[:HARD], as nofile=65536 or memlock=unlimited");
  app.add_flag("--rdma", into.rdma, "give it the InfiniBand devices, and memory to lock");
  many("--label", into.labels, "K=V, kept in the run's record");
}

RunChoice parse_run_words(const RunWords& words) {
  RunChoice choice;
  JobOptions& options = choice.options;
  options.limits = limits_of(words);
  for (const std::string& word : words.ulimits) options.ulimits.push_back(parse_ulimit(word));
  if (!words.shm.empty()) options.shm_bytes = parse_size("--shm-size", words.shm);
  if (!words.disk.empty()) options.disk_bytes = parse_size("--disk", words.disk);
  options.read_only = words.read_only;
  if (!words.user.empty()) options.user = words.user;
  options.groups = words.groups;
  if (!words.hostname.empty()) options.hostname = parse_hostname(words.hostname);
  options.network = network_of(words);
  for (const std::string& word : words.ports) {
    const std::vector<PublishedPort> ports = parse_ports(word);
    options.ports.insert(options.ports.end(), ports.begin(), ports.end());
  }
  for (const std::string& word : words.labels) options.labels.push_back(parse_label(word));
  add_mounts(words, choice);
  for (const std::string& file : words.env_files) {
    const std::vector<std::string> variables = file_variables(file);
    choice.env.insert(choice.env.end(), variables.begin(), variables.end());
  }
  options.rdma = words.rdma;
  for (Cache& cache : caches_of(words.caches)) {
    choice.mounts.push_back(std::move(cache.mount));
    choice.env.push_back(std::move(cache.variable));
  }
  return choice;
}

}  // namespace mlenv::cli
