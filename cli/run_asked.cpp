#include "cli/run_asked.hpp"

#include <unistd.h>
#include <algorithm>

#include "base/error.hpp"
#include "cli/data.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_after.hpp"
#include "cli/run_vm.hpp"
#include "cli/settings.hpp"
#include "cli/usage.hpp"
#include "runner/job/job_file.hpp"
#include "runner/local/rdma.hpp"

namespace mlenv::cli {
namespace {

bool wants_terminal(const AskedWords& options) {
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1;
  if (options.tty && !on_terminal) {
    throw usage_error("usage", "`-t` passes a terminal on, and standard input is none")
        .hint("leave `-t` out; the command then has your standard streams as they are");
  }
  if (options.shell) return on_terminal;
  return options.tty || (on_terminal && ::isatty(STDOUT_FILENO) == 1);
}

/// Of a run of a job.yaml: the rest as if it had been asked for by options.
std::optional<job::JobParts> take_job_file(AskedWords& options) {
  if (!is_job_file(options.image)) return std::nullopt;
  const fs::path path = options.image;
  job::JobParts parts = job::read_job_file(path, machine_config().storage);
  if (!parts.image) {
    throw usage_error("bad-job", "`{}` does not say which image", path.string())
        .hint("add `image: NAME`, or a recipe's file");
  }
  options.image = *parts.image;
  if (is_recipe_path(options.image) && fs::path(options.image).is_relative()) {
    options.image = (path.parent_path() / options.image).string();
  }
  if (options.command.empty()) options.command = parts.command.value_or(options.command);
  std::vector<std::string> env;
  for (const auto& [name, value] : parts.env) env.push_back(fmt::format("{}={}", name, value));
  options.env.insert(options.env.begin(), env.begin(), env.end());
  if (options.workdir.empty()) options.workdir = parts.workdir.value_or("");
  options.job.after.insert(options.job.after.begin(), parts.after.begin(), parts.after.end());
  RepeatOptions& repeat = options.repeat;
  repeat.deterministic = repeat.deterministic || parts.deterministic.value_or(false);
  if (parts.seed && !repeat.deterministic) {
    throw usage_error("bad-job", "`{}` has a `seed`, and is not deterministic", path.string())
        .hint("add `deterministic: true`, or set a variable of your own under `env`");
  }
  if (!repeat.seed) repeat.seed = parts.seed;
  RunWords& words = options.words;
  if (words.memory.empty() && parts.memory_bytes)
    words.memory = std::to_string(*parts.memory_bytes);
  if (words.cpus.empty() && parts.cpus) words.cpus = fmt::format("{}", *parts.cpus);
  if (words.shm.empty() && parts.shm_bytes) words.shm = std::to_string(*parts.shm_bytes);
  return parts;
}

std::optional<JobChoice> job_of(const AskedWords& options, const RunChoice& choice,
                                const Life& life, const StorageNames& storage,
                                const std::optional<job::JobParts>& file) {
  const LayerWords& layer = options.layer;
  return parse_job_words(
      options.job,
      {options.words, choice, life, options.runtime, options.tty, !options.jupyter.empty(),
       layer.keep || !layer.from.empty(), !options.repeat.outputs.empty(),
       !options.life.stop_timeout.empty(), options.no_project, storage},
      file);
}

/// What mounts on the command line may name; nobody's settings are read for those that name none.
StorageNames storage_for(const AskedWords& options, const std::optional<job::JobParts>& file) {
  if (file) return file->storage;
  const bool named = names_storage(options.job.checkpoints) ||
                     std::any_of(options.mounts.begin(), options.mounts.end(), names_storage);
  return named ? machine_config().storage : StorageNames{};
}

void check_machine(const AskedWords& options, Asked& asked) {
  if (asked.in_vm) {
    check_vm_options(asked.choice.options, options.words.network);
    check_vm_devices(asked.devices.gpus, asked.devices.devices);
  } else if (asked.choice.options.disk_bytes) {
    throw usage_error("usage", "`--disk` is a virtual machine's")
        .because("containers write to the disk of the store, or of their engine")
        .hint("leave it out, or add `--runtime vm`");
  }
}

}  // namespace

Asked understood(AskedWords& options) {
  const std::optional<job::JobParts> file = take_job_file(options);
  Asked asked;
  const StorageNames storage = storage_for(options, file);
  asked.mounts = mounts_of(options.mounts, storage);
  if (file) asked.mounts.insert(asked.mounts.begin(), file->mounts.begin(), file->mounts.end());
  check_variables(options.env);
  asked.choice = parse_run_words(options.words);
  const RunChoice& choice = asked.choice;
  asked.mounts.insert(asked.mounts.end(), choice.mounts.begin(), choice.mounts.end());
  asked.devices = parse_devices(options.devices);
  asked.life = parse_life(options.life);
  check_repeat(options.repeat);
  asked.jupyter = parse_notebook({options.jupyter, options.command, choice.options.network,
                                  options.tty, asked.life.detach, asked.life.name});
  asked.matrix = parse_matrix(options.matrix, {options.command, options.env, choice, asked.life,
                                               options.tty, options.job.engine == "slurm"});
  if (!options.layer.from.empty() && !options.job.after.empty()) {
    throw usage_error("usage", "`--from` and `--after` do not go together")
        .because("the layer of a run that goes on is its own until it ends")
        .hint("`mlenv wait RUN`, then `mlenv run --from RUN`");
  }
  if (asked.jupyter && !options.job.after.empty()) {
    throw usage_error("usage", "`--jupyter` and `--after` do not go together")
        .hint("start the notebook when the run has ended: `mlenv wait RUN`");
  }
  if (asked.matrix && asked.jupyter) {
    throw usage_error("usage", "`--matrix` runs a command, and `--jupyter` is one of its own")
        .hint("leave one of them out");
  }
  // An engine alone says enough of many jobs: each is of one node.
  if (asked.matrix && options.job.nodes.empty() && !options.job.engine.empty() && !file) {
    options.job.nodes = "1";
  }
  asked.job = job_of(options, choice, asked.life, storage, file);
  if (!asked.job) require_storage(asked.mounts);
  if (options.job.script.empty()) asked.after = runs_before(options.job.after);
  check_layer(options.layer, {choice.options.read_only, asked.matrix.has_value(),
                              options.life.remove, options.runtime});
  const bool has_streams = !asked.matrix && !asked.life.detach && !asked.jupyter && !asked.job;
  asked.terminal = has_streams && wants_terminal(options);
  asked.in_vm = options.runtime == kVmRuntime;
  check_machine(options, asked);
  if (asked.choice.options.rdma && !asked.job) add_rdma(asked.choice.options, asked.rdma);
  return asked;
}

}  // namespace mlenv::cli
