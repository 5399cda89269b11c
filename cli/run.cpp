#include <unistd.h>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>

#include "cli/command_tree.hpp"
#include "cli/data.hpp"
#include "cli/export.hpp"
#include "cli/interrupt.hpp"
#include "cli/platforms.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_devices.hpp"
#include "cli/run_engine.hpp"
#include "cli/run_job.hpp"
#include "cli/run_layer.hpp"
#include "cli/run_life.hpp"
#include "cli/run_matrix.hpp"
#include "cli/run_notebook.hpp"
#include "cli/run_options.hpp"
#include "cli/run_record.hpp"
#include "cli/run_recording.hpp"
#include "cli/run_repeat.hpp"
#include "cli/run_verdict.hpp"
#include "cli/run_vm.hpp"
#include "cli/running.hpp"
#include "cli/usage.hpp"
#include "images/inspect/inspect.hpp"
#include "images/unpack.hpp"
#include "runner/image_program.hpp"
#include "runner/job/job_file.hpp"
#include "runner/local/early_move.hpp"
#include "runner/local/layer_use.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/run.hpp"
#include "runner/mpi/site_rank.hpp"

namespace mlenv::cli {
namespace {

struct Options {
  std::string image;
  std::vector<std::string> mounts;
  std::vector<std::string> env;
  std::string workdir;
  std::string runtime;
  DeviceWords devices;
  RunWords words;
  bool no_project = false;
  bool no_check = false;
  bool tty = false;
  bool locked = false;
  bool shell = false;   ///< an interactive one in place of a command
  std::string jupyter;  ///< the word of `--jupyter`; empty: none
  LifeWords life;
  LayerWords layer;
  RepeatOptions repeat;
  MatrixWords matrix;
  JobWords job;
  std::vector<std::string> command;
};

/// A name that is there wins over a recipe's file.
bool is_recipe(const Options& options, Ui& ui) {
  return is_recipe_path(options.image) && !ui.store().find_image(options.image);
}

struct PreparedRun {
  LocalRun run;
  Image image;
};

/// Ready to run; Ctrl-C ends it as it ends a build.
PreparedRun prepare(const Options& options, Ui& ui, std::vector<Mount> mounts, bool of_job) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const bool of_recipe = is_recipe(options, ui);
  LocalRun run;
  run.mounts = std::move(mounts);
  if (of_recipe) add_data(run.mounts, options.image);
  Image image =
      of_recipe ? built_image(ui, options.image, options.locked) : image_named(ui, options.image);
  require_runnable(image, options.image);
  run.config = image.settings;
  run.runtime = runtime_of(options.runtime);
  if (of_job) {
    // Nodes unpack it themselves.
  } else if (is_engine(run.runtime)) {
    run.engine = engine_for(ui, run.runtime, image);
  } else {
    if (::geteuid() == 0) move_groups_early();
    run.trees = unpack_image(ui.store(), image, ui.progress());
  }
  sync_in_background(ui.store());
  if (!options.no_project) {
    // A recipe's own folder is the project; an image's is where the command was typed.
    run.project = of_recipe ? fs::absolute(fs::path(options.image)).lexically_normal().parent_path()
                            : fs::current_path();
  }
  return {std::move(run), std::move(image)};
}

bool wants_terminal(const Options& options) {
  const bool on_terminal = ::isatty(STDIN_FILENO) == 1;
  if (options.tty && !on_terminal) {
    throw usage_error("usage", "`-t` passes a terminal on, and standard input is none")
        .hint("leave `-t` out; the command then has your standard streams as they are");
  }
  if (options.shell) return on_terminal;
  return options.tty || (on_terminal && ::isatty(STDOUT_FILENO) == 1);
}

RunOutcome recorded_run(Ui& ui, const LocalRun& run, const RunStart& start,
                        const std::vector<PlacedOutput>& outputs,
                        std::optional<Notebook>& notebook) {
  AroundRun around{[&] { return read_outputs(outputs); }};
  if (notebook) around.before_start = notebook->before_start(ui);
  RecordedRun done = run_recorded(ui, run, start, around);
  say_outputs(ui, done.outputs);
  say_layer(ui, done.id, start);
  if (notebook) notebook->require_reached(done.outcome);
  return done.outcome;
}

/// What is in the run's image, which an engine unpacks where it cannot be looked at.
std::unique_ptr<ImageNames> names_in(Ui& ui, const Image& image, const LocalRun& run) {
  if (!run.engine) return std::make_unique<UnpackedNames>(run.trees);
  return std::make_unique<KnownNames>(facts_of_layers(ui.store(), image, ui.progress()));
}

/// What waits for the notebook of a run in the background; empty: there is none.
std::function<std::string(const std::string&)> url_in_background(
    const Ui& ui, std::optional<Notebook>& notebook) {
  if (!notebook) return {};
  return [&](const std::string& id) { return notebook->url_in_background(ui, id); };
}

/// Of a run of a job.yaml: the rest as if it had been asked for by options.
std::optional<job::JobParts> take_job_file(Options& options) {
  if (!is_job_file(options.image)) return std::nullopt;
  const fs::path path = options.image;
  job::JobParts parts = job::read_job_file(path);
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
  RunWords& words = options.words;
  if (words.memory.empty() && parts.memory_bytes)
    words.memory = std::to_string(*parts.memory_bytes);
  if (words.cpus.empty() && parts.cpus) words.cpus = fmt::format("{}", *parts.cpus);
  if (words.shm.empty() && parts.shm_bytes) words.shm = std::to_string(*parts.shm_bytes);
  return parts;
}

std::optional<JobChoice> job_of(const Options& options, const RunChoice& choice, const Life& life,
                                const std::optional<job::JobParts>& file) {
  const LayerWords& layer = options.layer;
  const RepeatOptions& repeat = options.repeat;
  return parse_job_words(
      options.job,
      {options.words, choice, life, options.runtime, options.tty, !options.jupyter.empty(),
       !options.matrix.axes.empty(), layer.keep || !layer.from.empty(),
       repeat.deterministic || !repeat.outputs.empty(), !options.life.stop_timeout.empty(),
       options.no_project},
      file);
}

/// All that was asked for, understood before anything is built or unpacked.
struct Asked {
  std::vector<Mount> mounts;
  RunChoice choice;
  DeviceChoice devices;
  Life life;
  std::optional<NotebookChoice> jupyter;
  std::optional<MatrixChoice> matrix;
  std::optional<JobChoice> job;
  bool terminal = false;
  bool in_vm = false;
};

void check_machine(const Options& options, Asked& asked) {
  if (asked.in_vm) {
    check_vm_options(asked.choice.options, options.words.network, asked.choice.devices);
    check_vm_devices(asked.devices.gpus, asked.devices.devices);
  } else if (asked.choice.options.disk_bytes) {
    throw usage_error("usage", "`--disk` is a virtual machine's")
        .because("containers write to the disk of the store, or of their engine")
        .hint("leave it out, or add `--runtime vm`");
  }
}

Asked understood(Options& options) {
  const std::optional<job::JobParts> file = take_job_file(options);
  Asked asked;
  asked.mounts = mounts_of(options.mounts);
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
  asked.matrix =
      parse_matrix(options.matrix, {options.command, options.env, choice, asked.life, options.tty});
  if (asked.matrix && asked.jupyter) {
    throw usage_error("usage", "`--matrix` runs a command, and `--jupyter` is one of its own")
        .hint("leave one of them out");
  }
  asked.job = job_of(options, choice, asked.life, file);
  check_layer(options.layer, {choice.options.read_only, asked.matrix.has_value(),
                              options.life.remove, options.runtime});
  const bool has_streams = !asked.matrix && !asked.life.detach && !asked.jupyter && !asked.job;
  asked.terminal = has_streams && wants_terminal(options);
  asked.in_vm = options.runtime == kVmRuntime;
  check_machine(options, asked);
  return asked;
}

/// What is asked of the command, whoever runs it.
void fill_in(LocalRun& run, const Options& options, const Asked& asked) {
  run.options = asked.choice.options;
  if (run.engine && run.options.limits.memory_swap_bytes && !run.engine->swap_limit) {
    throw failure("no-limit", "`--memory-swap` cannot be applied here")
        .because(fmt::format("{} does not limit swap on this machine", run.engine->name))
        .hint("leave it out");
  }
  run.env = asked.choice.env;
  run.env.insert(run.env.end(), options.env.begin(), options.env.end());
  run.workdir = options.workdir;
  run.argv = options.command;
  run.terminal = asked.terminal;
  run.life = asked.life.run;
}

/// A rank that the site's MPI starts has what its launcher gave it.
void join_mpi(Ui& ui, LocalRun& run) {
  const std::optional<mpi::SiteRank> rank = mpi::site_rank(caller_variables());
  if (!rank) return;
  mpi::join_site(*rank, run);
  if (const std::string note = mpi::site_note(*rank); !note.empty()) ui.say("mlenv: " + note);
}

int run_as_job(Ui& ui, const Options& options, const Asked& asked, PreparedRun prepared) {
  LocalRun& run = prepared.run;
  if (asked.job->code) run.project = fs::absolute(asked.job->code->folder).lexically_normal();
  RunStart start =
      run_start(run, prepared.image, {options.image, {}, !options.no_check, std::nullopt});
  record_life(asked.life, start);
  return run_job(ui, {*asked.job, std::move(run), std::move(prepared.image), std::move(start),
                      asked.life.most_log_bytes, options.devices.gpus});
}

int run_image(Options options, Ui& ui) {
  Asked asked = understood(options);
  PreparedRun prepared = prepare(options, ui, std::move(asked.mounts), asked.job.has_value());
  LocalRun& run = prepared.run;
  if (asked.job) {
    fill_in(run, options, asked);
    return run_as_job(ui, options, asked, std::move(prepared));
  }
  const bool with_gpus = !asked.in_vm && takes_gpus(ui, prepared.image, asked.devices.gpus);
  if (!options.no_check) {
    run.first_libraries =
        require_verdict(ui, prepared.image, {options.image, asked.devices.gpus, with_gpus});
  }
  fill_in(run, options, asked);
  join_mpi(ui, run);
  if (asked.in_vm) run.vm = vm_for(ui, run, prepared.image);
  RunBackground background{options.image, {}, !options.no_check, layer_of(options.layer)};
  if (asked.matrix) {
    run.devices = std::move(asked.choice.devices);
    return run_matrix(ui, *asked.matrix,
                      {std::move(run), std::move(prepared.image), background, asked.devices,
                       with_gpus, asked.life, options.repeat});
  }
  ChosenDevices chosen = devices_for(asked.devices, with_gpus);
  run.devices = std::move(chosen.edits);
  const std::vector<CdiNode>& nodes = asked.choice.devices.nodes;
  run.devices.nodes.insert(run.devices.nodes.end(), nodes.begin(), nodes.end());
  if (options.shell) {
    run.argv = run.engine ? shell_words() : std::vector<std::string>{best_shell(run.trees)};
  }
  std::optional<Notebook> notebook;
  if (asked.jupyter) {
    notebook.emplace(ui, *asked.jupyter, *names_in(ui, prepared.image, run), run);
  }
  background.devices = std::move(chosen.names);
  RunStart start = run_start(run, prepared.image, background);
  record_life(asked.life, start);
  const std::vector<PlacedOutput> outputs = declare_repeat(options.repeat, run, start);
  if (asked.life.detach) {
    return run_detached(ui, std::move(run), std::move(start), asked.life,
                        url_in_background(ui, notebook));
  }
  const TemporaryFolder scratch = ui.store().scratch();
  run.scratch = scratch.path();
  const std::unique_ptr<UsedLayer> layer = use_layer(ui.store().root(), start, run);
  return recorded_run(ui, repeatable(run, options.repeat), start, outputs, notebook).exit.code;
}

}  // namespace

std::vector<std::string> separate_job(std::vector<std::string> words) {
  // Options that take the next word; `-eK=V` and `--env=K=V` take none.
  static const std::set<std::string, std::less<>> takes_word = [] {
    std::set<std::string, std::less<>> all = {"-v",
                                              "--volume",
                                              "-e",
                                              "--env",
                                              "-w",
                                              "--workdir",
                                              "--runtime",
                                              "--gpus",
                                              "--device",
                                              "--color",
                                              "--progress",
                                              "--name",
                                              "--timeout",
                                              "--restart",
                                              "--stop-signal",
                                              "--stop-timeout",
                                              "--log-size",
                                              "--seed",
                                              "--from",
                                              "--outputs"};
    for (const std::string_view one : run_options_with_words()) all.emplace(one);
    for (const std::string_view one : kMatrixOptionsWithWords) all.emplace(one);
    for (const std::string_view one : kJobOptionsWithWords) all.emplace(one);
    return all;
  }();
  constexpr std::size_t kBeforeJob = 2;  // `run` and IMAGE, `exec` and RUN
  std::size_t plain = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") break;
    if (word.size() > 1 && word.front() == '-') {
      if (takes_word.contains(word)) ++i;
    } else if (plain == 0 && word != "run" && word != "exec") {
      break;
    } else if (plain++ == kBeforeJob) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), "--");
      break;
    }
  }
  return words;
}

namespace {

void add_run_options(CLI::App& app, const std::shared_ptr<Options>& options) {
  CLI::Option* const volume =
      app.add_option("-v,--volume", options->mounts, "mount SRC:DST or SRC:DST:ro");
  take_one_word(volume);
  take_word_of(volume, WordKind::file);
  take_one_word(app.add_option("-e,--env", options->env, "set K=V, or pass the caller's K on"));
  app.add_option("-w,--workdir", options->workdir, "start there; by default the image's");
  take_word_of(app.add_option("--runtime", options->runtime,
                              "docker, podman or vm; or builtin, with runc, crun or a path to one"),
               WordKind::file);
  app.add_option("--gpus", options->devices.gpus,
                 "all, none, how many, or device=0,2; by default all where the image uses CUDA")
      ->type_name("GPUS");
  take_one_word(app.add_option("--device", options->devices.devices,
                               "a device of the Container Device Interface: VENDOR/CLASS=NAME"));
  declare_run_options(app, options->words);
  add_layer_options(app, options->layer);
  app.add_flag("--no-project", options->no_project, "do not mount this folder at the workdir");
  app.add_flag("--no-check", options->no_check, "start it even where it cannot run here");
  app.add_flag("--locked", options->locked, "of a recipe: use its lock as it is");
}

}  // namespace

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  take_word_of(app.add_option("IMAGE", options->image,
                              "an image in the store, or a recipe (built when needed)")
                   ->required(),
               WordKind::runnable);
  add_run_options(app, options);
  add_notebook_option(app, options->jupyter);
  app.add_flag("-t,--tty", options->tty, "give it a terminal");
  add_life_options(app, options->life);
  add_repeat_options(app, options->repeat);
  add_matrix_options(app, options->matrix);
  add_job_options(app, options->job);
  take_word_of(app.add_option("CMD", options->command, "the command; by default the image's"),
               WordKind::job);
  app.prefix_command(false);
  app.positionals_at_end(false);
  app.footer("example: mlenv run recipe.yaml -- python train.py");
  return [options](Ui& ui) { return run_image(*options, ui); };
}

void declare_export_job(CLI::App& app, const std::string& form,
                        const std::shared_ptr<Action>& action) {
  auto options = std::make_shared<Options>();
  options->job.script = form;
  take_word_of(app.add_option("JOB|IMAGE", options->image,
                              "a job.yaml, an image in the store, or a recipe (built when needed)")
                   ->required(),
               WordKind::runnable);
  add_run_options(app, options);
  app.add_option("--name", options->life.name, "what the job is called");
  app.add_option("--timeout", options->life.timeout, "end it after so long: `90s`, `12h`")
      ->type_name("DURATION");
  add_job_options(app, options->job);
  // Of starting it.
  std::vector<const char*> others = {"--engine", "--dry-run"};
  if (form == "slurm") others.push_back("--hosts");
  if (form != "slurm") others.push_back("--slurm-option");
  for (const char* const other : others) app.remove_option(app.get_option(other));
  add_script_options(app, options->job);
  take_word_of(app.add_option("CMD", options->command, "the command; by default the image's"),
               WordKind::job);
  app.positionals_at_end(false);
  app.footer("example: mlenv export " + form + " job.yaml -o job.sh");
  app.callback([=] {
    *action = [options](Ui& ui) {
      if (options->job.nodes.empty() && !is_job_file(options->image)) options->job.nodes = "1";
      return run_image(*options, ui);
    };
  });
}

Action declare_shell(CLI::App& app) {
  auto options = std::make_shared<Options>();
  options->shell = true;
  take_word_of(app.add_option("IMAGE|RUN", options->image,
                              "an image in the store, a recipe (built when needed), or a run that "
                              "goes on")
                   ->required(),
               WordKind::enterable);
  add_run_options(app, options);
  app.footer("example: mlenv shell recipe.yaml");
  return [options](Ui& ui) {
    const bool is_image = is_recipe_path(options->image) || ui.store().find_image(options->image);
    if (const auto run = running_run(options->image, is_image)) {
      return shell_in_run(*run, {options->env, options->workdir});
    }
    return run_image(*options, ui);
  };
}

}  // namespace mlenv::cli
