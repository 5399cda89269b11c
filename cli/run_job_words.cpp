#include <algorithm>
#include <charconv>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_job.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/job/words.hpp"

namespace mlenv::cli {
namespace {

using job::Job;

Error not_with(std::string_view option, std::string why) {
  return usage_error("usage", "`{}` does not go with `--nodes`", option).because(std::move(why));
}

/// Options of a job alone, without one.
void refuse_without(const JobWords& words) {
  const char* option = !words.engine.empty()           ? "--engine"
                       : !words.hosts.empty()          ? "--hosts"
                       : !words.ranks_per_node.empty() ? "--ranks-per-node"
                       : !words.strategy.empty()       ? "--strategy"
                       : !words.framework.empty()      ? "--framework"
                       : !words.interface.empty()      ? "--interface"
                       : !words.restarts.empty()       ? "--restarts"
                       : !words.checkpoints.empty()    ? "--checkpoints"
                       : !words.servers.empty()        ? "--servers"
                       : words.evaluator               ? "--evaluator"
                       : words.dry_run                 ? "--dry-run"
                                                       : nullptr;
  if (option == nullptr) return;
  throw usage_error("usage", "`{}` is of a job on several nodes, and `--nodes` is not given", option)
      .hint("`--nodes 3` runs the command on three; `--nodes 1` on one");
}

void refuse_together(const BesideJob& beside) {
  if (beside.terminal) throw not_with("-t", "ranks have no standard input");
  if (beside.jupyter) throw not_with("--jupyter", "a notebook runs on one machine");
  if (beside.matrix) throw not_with("--matrix", "its variations run on this machine");
  if (beside.layer) throw not_with("--keep", "what ranks write to the image is thrown away");
  if (beside.repeat) {
    throw not_with("--deterministic", "it is for runs on one machine, and so is `--outputs`");
  }
  if (beside.life.detach) {
    throw not_with("-d", "mlenv stays as long as the job")
        .hint("`nohup mlenv run … >job.log 2>&1 &`; `mlenv logs -f` and `mlenv stop` reach it");
  }
  if (beside.life.run.restart.when != RestartPolicy::When::never) {
    throw not_with("--restart", "it would start one rank again without the others")
        .hint("`--restarts N` starts all of them again");
  }
  if (!beside.runtime.empty() && beside.runtime != "builtin") {
    throw not_with("--runtime", "nodes run containers by their own runc or crun");
  }
  if (!beside.choice.options.ports.empty()) {
    throw not_with("--publish", "ranks have their nodes' network");
  }
  if (!beside.words.network.empty() && beside.words.network != "host") {
    throw not_with("--network", "ranks have their nodes' network, by which they meet");
  }
}

std::uint64_t number_of(std::string_view option, const std::string& text, std::uint64_t least,
                        std::uint64_t most) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc{} && rest == end && number >= least && number <= most) return number;
  throw usage_error("usage", "`{} {}` is no number from {} to {}", option, text, least, most);
}

Error unknown_word(std::string_view option, const std::string& word,
                   const std::vector<std::string_view>& known) {
  const std::vector<std::string> names{known.begin(), known.end()};
  Error error = usage_error("usage", "`{} {}` is none of {}", option, word, join(names, ", "));
  if (const auto near = nearest(word, known); !near.empty()) error.hint(did_you_mean(near));
  return error;
}

std::string engine_of(const JobWords& words) {
  static const std::vector<std::string_view> kEngines = {"local", "ssh"};
  if (words.engine.empty()) return words.hosts.empty() ? "local" : "ssh";
  if (std::find(kEngines.begin(), kEngines.end(), words.engine) == kEngines.end()) {
    throw unknown_word("--engine", words.engine, kEngines);
  }
  if (words.engine == "ssh" && words.hosts.empty()) {
    throw usage_error("usage", "`--engine ssh` needs to know the nodes")
        .hint("`--hosts FILE`, a host on each line, or `--hosts n1,n2,n3`");
  }
  if (words.engine != "ssh" && !words.hosts.empty()) {
    throw usage_error("usage", "`--hosts` is of `--engine ssh`, not of `{}`", words.engine);
  }
  return words.engine;
}

void take_strategy(const JobWords& words, Job& job) {
  job.strategy = job::Strategy::allreduce;
  if (!words.strategy.empty()) {
    const std::optional<job::Strategy> strategy = job::strategy_of(words.strategy);
    if (!strategy) throw unknown_word("--strategy", words.strategy, job::strategy_names());
    job.strategy = *strategy;
  }
  if (!words.framework.empty()) {
    const std::optional<job::Framework> framework = job::framework_of(words.framework);
    if (!framework) throw unknown_word("--framework", words.framework, job::framework_names());
    job.framework = *framework;
  }
  constexpr std::uint64_t kMostServers = 65535;
  if (job.strategy != job::Strategy::parameter_server && (!words.servers.empty() || words.evaluator)) {
    throw usage_error("usage", "`{}` is of `--strategy parameter-server`",
                      words.evaluator ? "--evaluator" : "--servers");
  }
  if (!words.servers.empty()) {
    job.roles.servers = number_of("--servers", words.servers, 1, kMostServers);
  }
  job.roles.evaluator = words.evaluator;
}

}  // namespace

void add_job_options(CLI::App& app, JobWords& words) {
  app.add_option("--nodes", words.nodes, "on so many nodes, or MIN:MAX (docs/jobs.md)")
      ->type_name("N");
  app.add_option("--engine", words.engine, "who brings it there: local, ssh")->type_name("ENGINE");
  take_word_of(app.add_option("--hosts", words.hosts, "of ssh: a file with a host a line, or a,b,c"),
               WordKind::file);
  app.add_option("--ranks-per-node", words.ranks_per_node, "processes on each node; by default 1")
      ->type_name("N");
  app.add_option("--strategy", words.strategy, "allreduce (default), parameter-server, plain");
  app.add_option("--framework", words.framework,
                 "torch, jax, tensorflow, mpi, none; by default the image's");
  app.add_option("--servers", words.servers, "parameter servers among the ranks; by default 1")
      ->type_name("N");
  app.add_flag("--evaluator", words.evaluator, "the last rank evaluates");
  app.add_option("--interface", words.interface, "the network interface by which nodes meet")
      ->type_name("NAME");
  app.add_option("--restarts", words.restarts, "start all ranks again so often after a failure")
      ->type_name("N");
  app.add_option("--checkpoints", words.checkpoints, "a folder that all nodes share: SRC[:DST]");
  app.add_flag("--dry-run", words.dry_run, "show what would be started, and start nothing");
}

std::optional<JobChoice> parse_job_words(const JobWords& words, const BesideJob& beside) {
  if (words.nodes.empty()) {
    refuse_without(words);
    return std::nullopt;
  }
  refuse_together(beside);
  JobChoice choice;
  const std::optional<job::NodeCount> nodes = job::node_count_of(words.nodes);
  if (!nodes) {
    throw usage_error("usage", "`--nodes {}` is no number of nodes", words.nodes)
        .hint("`--nodes 4`; `--nodes 2:4` for a job that goes on with fewer");
  }
  constexpr std::uint64_t kMostRanks = 1024;
  constexpr std::uint64_t kMostRestarts = 1000000;
  Job& job = choice.job;
  job.nodes = *nodes;
  choice.engine = engine_of(words);
  choice.hosts = words.hosts;
  choice.dry_run = words.dry_run;
  choice.framework_given = !words.framework.empty();
  if (!words.ranks_per_node.empty()) {
    job.ranks_per_node = number_of("--ranks-per-node", words.ranks_per_node, 1, kMostRanks);
  }
  take_strategy(words, job);
  job.interface = words.interface;
  if (!words.restarts.empty()) {
    job.restarts = number_of("--restarts", words.restarts, 0, kMostRestarts);
  }
  job.name = beside.life.name;
  job.deadline = beside.life.run.timeout;
  job.grace = beside.life.run.grace;
  if (!words.checkpoints.empty()) {
    const bool has_target = words.checkpoints.find(':') != std::string::npos;
    job.checkpoints =
        Mount::parse(has_target ? words.checkpoints : words.checkpoints + ":/checkpoints");
  }
  return choice;
}

}  // namespace mlenv::cli
