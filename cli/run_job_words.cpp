#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/duration.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "cli/command_tree.hpp"
#include "cli/pull_from.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_after.hpp"
#include "cli/run_job.hpp"
#include "cli/usage.hpp"
#include "recipes/text.hpp"
#include "runner/job/parts.hpp"
#include "runner/job/words.hpp"

namespace mlenv::cli {
namespace {

Error not_with_nodes(std::string_view option, std::string why) {
  return usage_error("usage", "`{}` does not go with `--nodes`", option).because(std::move(why));
}

/// Options of a job alone, without one.
void refuse_without_nodes(const JobWords& words) {
  const std::array<std::pair<const char*, bool>, 18> given{{
      {"--engine", !words.engine.empty()},
      {"--hosts", !words.hosts.empty()},
      {"--ranks-per-node", !words.ranks_per_node.empty()},
      {"--strategy", !words.strategy.empty()},
      {"--framework", !words.framework.empty()},
      {"--interface", !words.interface.empty()},
      {"--pull-from", !words.pull_from.empty()},
      {"--restarts", !words.restarts.empty()},
      {"--checkpoints", !words.checkpoints.empty()},
      {"--servers", !words.servers.empty()},
      {"--evaluator", words.evaluator},
      {"--async", words.async},
      {"--rescale-interval", !words.rescale_interval.empty()},
      {"--code", !words.code.empty()},
      {"--slurm-option", !words.site.empty()},
      {"--preflight", words.preflight},
      {"--stall-timeout", !words.stall_timeout.empty()},
      {"--dry-run", words.dry_run},
  }};
  const auto first =
      std::find_if(given.begin(), given.end(), [](const auto& one) { return one.second; });
  if (first == given.end()) return;
  const char* const option = first->first;
  throw usage_error("usage", "`{}` is of a job on several nodes, and `--nodes` is not given",
                    option)
      .hint("`--nodes 3` runs the command on three; `--nodes 1` on one");
}

void refuse_beside_nodes(const JobWords& words, const BesideJob& beside) {
  if (beside.terminal) throw not_with_nodes("-t", "ranks have no standard input");
  if (beside.jupyter) throw not_with_nodes("--jupyter", "a notebook runs on one machine");
  if (beside.layer) throw not_with_nodes("--keep", "what ranks write to the image is thrown away");
  if (beside.outputs) {
    throw not_with_nodes("--outputs", "digests are taken of what a run on one machine leaves there")
        .hint("leave it out; what ranks write to mounts and checkpoints stays there");
  }
  if (beside.life.run.restart.when != RestartPolicy::When::never) {
    throw not_with_nodes("--restart", "it would start one rank again without the others")
        .hint("`--restarts N` starts all of them again");
  }
  if (!beside.runtime.empty() && beside.runtime != "builtin") {
    throw not_with_nodes("--runtime", "nodes run containers by their own runc or crun");
  }
  if (beside.no_project && !words.code.empty()) {
    throw usage_error("usage", "`--code` and `--no-project` do not go together")
        .hint("without a project ranks have the image's files alone");
  }
  if (!beside.choice.options.ports.empty()) {
    throw not_with_nodes("--publish", "ranks have their nodes' network");
  }
  if (!beside.words.network.empty() && beside.words.network != "host") {
    throw not_with_nodes("--network", "ranks have their nodes' network, by which they meet");
  }
}

std::uint64_t number_within(std::string_view option, const std::string& text, std::uint64_t least,
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

/// Of `mlenv export`.
ScriptChoice script_of(const JobWords& words) {
  using Form = job::JobScript::Form;
  ScriptChoice choice;
  choice.form = words.script == "slurm" ? Form::slurm
                : words.script == "ssh" ? Form::ssh
                                        : Form::mpi;
  if (!words.script_with.empty()) {
    const auto with = job::script_with(words.script_with);
    if (!with) throw unknown_word("--with", words.script_with, {"builtin", "pyxis", "apptainer"});
    choice.with = *with;
  }
  choice.file = words.script_file;
  choice.force = words.script_force;
  return choice;
}

std::string engine_of(const JobWords& words) {
  constexpr std::array<std::string_view, 3> kEngines = {"local", "ssh", "slurm"};
  if (!words.script.empty()) {
    if (words.script != "ssh" || !words.hosts.empty()) return words.script;
    throw usage_error("usage", "`mlenv export ssh` needs to know the nodes")
        .hint("`--hosts FILE`, a host on each line, or `--hosts n1,n2,n3`");
  }
  if (words.engine.empty()) return words.hosts.empty() ? "local" : "ssh";
  if (std::find(kEngines.begin(), kEngines.end(), words.engine) == kEngines.end()) {
    throw unknown_word("--engine", words.engine, {kEngines.begin(), kEngines.end()});
  }
  if (words.engine == "ssh" && words.hosts.empty()) {
    throw usage_error("usage", "`--engine ssh` needs to know the nodes")
        .hint("`--hosts FILE`, a host on each line, or `--hosts n1,n2,n3`");
  }
  if (words.engine != "ssh" && !words.hosts.empty()) {
    throw usage_error("usage", "`--hosts` is of `--engine ssh`, not of `{}`", words.engine);
  }
  if (words.engine != "slurm" && !words.site.empty()) {
    throw usage_error("usage", "`--slurm-option` is of `--engine slurm`, not of `{}`",
                      words.engine);
  }
  return words.engine;
}

void take_strategy(const JobWords& words, job::JobParts& parts) {
  if (!words.strategy.empty()) {
    parts.strategy = job::strategy_of(words.strategy);
    if (!parts.strategy) throw unknown_word("--strategy", words.strategy, job::strategy_names());
  }
  if (!words.framework.empty()) {
    parts.framework = job::framework_of(words.framework);
    if (!parts.framework) {
      throw unknown_word("--framework", words.framework, job::framework_names());
    }
  }
  constexpr std::uint64_t kMostServers = 65535;
  if (!words.servers.empty()) {
    parts.servers = number_within("--servers", words.servers, 1, kMostServers);
  }
  if (words.evaluator) parts.evaluator = true;
  if (words.async) parts.async = true;
}

/// What options say of the job's form.
job::JobParts job_parts(const JobWords& words, const BesideJob& beside) {
  using job::kMostRanks;
  constexpr std::uint64_t kMostRestarts = 1000000;
  job::JobParts parts;
  if (!words.nodes.empty()) {
    parts.nodes = job::node_count_of(words.nodes);
    if (!parts.nodes) {
      throw usage_error("usage", "`--nodes {}` is no number of nodes", words.nodes)
          .hint("`--nodes 4`; `--nodes 2:4` for a job that goes on with fewer");
    }
  }
  if (!words.ranks_per_node.empty()) {
    parts.ranks_per_node = number_within("--ranks-per-node", words.ranks_per_node, 1, kMostRanks);
  }
  take_strategy(words, parts);
  if (!words.interface.empty()) parts.interface = words.interface;
  if (!words.pull_from.empty()) parts.pull_from = words.pull_from;
  if (!words.restarts.empty()) {
    parts.restarts = number_within("--restarts", words.restarts, 0, kMostRestarts);
  }
  if (words.preflight) parts.preflight = true;
  if (!words.stall_timeout.empty()) {
    parts.stall_timeout = duration_of("--stall-timeout", words.stall_timeout);
    if (parts.stall_timeout->count() == 0) {
      throw usage_error("usage", "`--stall-timeout {}` leaves no time", words.stall_timeout)
          .hint("leave it out: then a stall is told, and the job goes on");
    }
  }
  if (!words.rescale_interval.empty()) {
    parts.rescale_interval = duration_of("--rescale-interval", words.rescale_interval);
  }
  if (!beside.life.name.empty()) parts.name = beside.life.name;
  parts.deadline = beside.life.run.timeout;
  if (beside.grace_given) parts.grace = beside.life.run.grace;
  if (!words.checkpoints.empty()) {
    const bool has_target = words.checkpoints.find(':') != std::string::npos;
    parts.checkpoints =
        job::mount_of_nodes(has_target ? words.checkpoints : words.checkpoints + ":/checkpoints",
                            fs::current_path(), beside.storage);
  }
  return parts;
}

}  // namespace

bool is_job_file(const std::string& word) {
  if (!is_recipe_path(word)) return false;
  try {
    const std::optional<std::string> text = read_small_file_if_exists(word, size_limit::kRecipe);
    return text && (text->starts_with("image:") || text->find("\nimage:") != std::string::npos);
  } catch (const Error&) {
    return false;  // whoever reads it as a recipe says why it cannot
  }
}

void add_job_options(CLI::App& app, JobWords& words) {
  app.add_option("--nodes", words.nodes, "on so many nodes, or MIN:MAX (docs/jobs.md)")
      ->type_name("N");
  app.add_option("--engine", words.engine, "who brings it there: local, ssh, slurm")
      ->type_name("ENGINE");
  take_word_of(
      app.add_option("--hosts", words.hosts, "of ssh: a file with a host a line, or a,b,c"),
      WordKind::file);
  app.add_option("--ranks-per-node", words.ranks_per_node, "processes on each node; by default 1")
      ->type_name("N");
  app.add_option("--strategy", words.strategy, "allreduce (default), parameter-server, mpi, plain");
  app.add_option("--framework", words.framework,
                 "torch, jax, tensorflow, mpi, none; by default the image's");
  app.add_option("--servers", words.servers, "parameter servers among the ranks; by default 1")
      ->type_name("N");
  app.add_flag("--evaluator", words.evaluator, "the last rank evaluates");
  app.add_flag("--async", words.async,
               "workers of parameter servers that fail are started again by themselves");
  app.add_option("--interface", words.interface, "the network interface by which nodes meet")
      ->type_name("NAME");
  add_pull_from(app, words.pull_from);
  app.add_option("--restarts", words.restarts, "start all ranks again so often after a failure")
      ->type_name("N");
  app.add_option("--rescale-interval", words.rescale_interval,
                 "of MIN:MAX: begin again for more nodes no sooner; by default 30s")
      ->type_name("TIME");
  app.add_flag("--preflight", words.preflight, "measure the links between the nodes first");
  app.add_option("--stall-timeout", words.stall_timeout,
                 "end it, or restart, when no rank has done anything for so long: 10m")
      ->type_name("TIME");
  app.add_option("--checkpoints", words.checkpoints,
                 "a folder that all nodes share: SRC[:DST], @STORAGE/FOLDER[:DST]");
  take_word_of(
      app.add_option("--code", words.code, "the ranks' code: FOLDER, or FOLDER@REVISION of git")
          ->type_name("FOLDER"),
      WordKind::file);
  take_one_word(app.add_option("--slurm-option", words.site,
                               "a word for sbatch: `--slurm-option=--partition=gpu`"));
  add_after_option(app, words.after);
  app.add_flag("--dry-run", words.dry_run, "show what would be started, and start nothing");
}

void add_script_options(CLI::App& app, JobWords& words) {
  if (words.script != "ssh") {
    take_one_of(app.add_option("--with", words.script_with,
                               "what runs the containers: mlenv-node (the default), or the site's"),
                words.script == "slurm" ? std::vector<std::string>{"builtin", "pyxis", "apptainer"}
                                        : std::vector<std::string>{"builtin", "apptainer"});
  }
  take_word_of(app.add_option("-o,--output", words.script_file,
                              "write it there, and what it needs beside it; else it is shown"),
               WordKind::file);
  app.add_flag("--force", words.script_force, "write over a file that is there");
}

std::optional<JobChoice> parse_job_words(const JobWords& words, const BesideJob& beside,
                                         const std::optional<job::JobParts>& file) {
  if (words.nodes.empty() && !file) {
    refuse_without_nodes(words);
    return std::nullopt;
  }
  refuse_beside_nodes(words, beside);
  JobChoice choice;
  choice.engine = engine_of(words);
  choice.hosts = words.hosts;
  choice.site = words.site;
  choice.dry_run = words.dry_run;
  choice.after = words.after;
  if (!words.script.empty()) choice.script = script_of(words);
  const job::JobParts options = job_parts(words, beside);
  const job::JobParts parts = file ? job::merged(*file, options) : options;
  if (!words.code.empty()) choice.code = job::parse_code(words.code);
  choice.ranks = parts.ranks_per_node;
  choice.framework_given = parts.framework.has_value();
  choice.job = job::job_of(parts);
  return choice;
}

}  // namespace mlenv::cli
