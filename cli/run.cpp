#include <unistd.h>
#include <memory>

#include <CLI/CLI.hpp>

#include "cli/command_tree.hpp"
#include "cli/data.hpp"
#include "cli/export.hpp"
#include "cli/help_groups.hpp"
#include "cli/interrupt.hpp"
#include "cli/platforms.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_after.hpp"
#include "cli/run_asked.hpp"
#include "cli/run_engine.hpp"
#include "cli/run_record.hpp"
#include "cli/run_recording.hpp"
#include "cli/run_verdict.hpp"
#include "cli/run_vm.hpp"
#include "cli/running.hpp"
#include "cli/usage.hpp"
#include "images/inspect/inspect.hpp"
#include "images/unpack.hpp"
#include "runner/image_program.hpp"
#include "runner/local/early_move.hpp"
#include "runner/local/layer_use.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/run.hpp"
#include "runner/mpi/site_rank.hpp"

namespace mlenv::cli {
namespace {

/// A name that is there wins over a recipe's file.
bool is_recipe(const AskedWords& options, Ui& ui) {
  return is_recipe_path(options.image) && !ui.store().find_image(options.image);
}

struct ReadyRun {
  LocalRun run;
  Image image;
  std::vector<job::DataSet> data;  ///< of a job, whose nodes see to it
};

/// Ready to run; Ctrl-C ends it as it ends a build.
ReadyRun prepare(const AskedWords& options, Ui& ui, std::vector<Mount> mounts,
                 const std::optional<JobChoice>& job) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const bool of_recipe = is_recipe(options, ui);
  LocalRun run;
  run.mounts = std::move(mounts);
  const bool on_nodes = job && !job->script;  // a script mounts data from where it lies
  const bool with_data = of_recipe && !on_nodes;
  if (with_data) require_data(options.image);  // it is not to be told after minutes
  std::optional<BuildOutcome> built;
  if (of_recipe) built = built_here(ui, options.image, options.locked);
  if (with_data) add_data(run, built->data);
  Image image = built ? std::move(built->result.image) : image_named(ui, options.image);
  require_runnable(image, options.image);
  std::vector<job::DataSet> data;
  if (of_recipe && on_nodes) data = data_sets_of(ui, options.image);
  run.config = image.settings;
  run.runtime = runtime_of(options.runtime);
  if (job) {
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
  return {std::move(run), std::move(image), std::move(data)};
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
std::unique_ptr<ImageNames> image_names(Ui& ui, const Image& image, const LocalRun& run) {
  if (!run.engine) return std::make_unique<UnpackedNames>(run.trees);
  return std::make_unique<KnownNames>(facts_of_layers(ui.store(), image, ui.progress()));
}

/// What waits for the notebook of a run in the background; empty: there is none.
std::function<std::string(const std::string&)> url_in_background(
    const Ui& ui, std::optional<Notebook>& notebook) {
  if (!notebook) return {};
  return [&](const std::string& id) { return notebook->url_in_background(ui, id); };
}

/// What is asked of the command, whoever runs it.
void fill_in(LocalRun& run, const AskedWords& options, const Asked& asked) {
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

/// Nodes have not the caller's variables: `K` goes there as `K=V`, or not at all where it is not
/// set.
void take_callers_values(std::vector<std::string>& env) {
  const Variables caller = caller_variables();
  std::vector<std::string> whole;
  for (const std::string& word : env) {
    if (word.find('=') != std::string::npos) {
      whole.push_back(word);
    } else if (const auto value = caller.find(word); value != caller.end()) {
      whole.push_back(word + "=" + value->second);
    }
  }
  env = std::move(whole);
}

int run_as_job(Ui& ui, const AskedWords& options, const Asked& asked, ReadyRun prepared) {
  LocalRun& run = prepared.run;
  run.settled.clear();  // sources are of the nodes
  // A script has those of whoever starts it.
  if (!asked.job->script) take_callers_values(run.env);
  if (asked.job->code) run.project = fs::absolute(asked.job->code->folder).lexically_normal();
  const RunBackground background{options.image, {}, !options.no_check, std::nullopt};
  RunStart start = run_start(run, prepared.image, background);
  record_life(asked.life, start);
  start.after = asked.after;
  record_determinism(options.repeat, start);
  PreparedJob job{*asked.job,
                  std::move(run),
                  std::move(prepared.image),
                  std::move(start),
                  asked.life.most_log_bytes,
                  options.devices.gpus,
                  std::move(prepared.data)};
  if (asked.matrix) job.matrix = JobMatrix{*asked.matrix, background, asked.life};
  return run_job(ui, std::move(job));
}

int run_image(AskedWords options, Ui& ui) {
  Asked asked = understood(options);
  ReadyRun prepared = prepare(options, ui, std::move(asked.mounts), asked.job);
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
    if (const auto told = wait_before(ui, asked.after)) return told->exit.code;
    run.devices = std::move(asked.rdma);
    ui.store().need_only({prepared.image.digest()});  // they may go on for weeks
    return run_matrix(ui, *asked.matrix,
                      {std::move(run), std::move(prepared.image), background, asked.devices,
                       with_gpus, asked.life, options.repeat});
  }
  ChosenDevices chosen = devices_for(asked.devices, with_gpus);
  run.devices = std::move(chosen.edits);
  run.devices.append(asked.rdma);
  if (options.shell) {
    run.argv = run.engine ? shell_words() : std::vector<std::string>{best_shell(run.trees)};
  }
  std::optional<Notebook> notebook;
  if (asked.jupyter) {
    notebook.emplace(ui, *asked.jupyter, *image_names(ui, prepared.image, run), run);
  }
  background.devices = std::move(chosen.names);
  RunStart start = run_start(run, prepared.image, background);
  record_life(asked.life, start);
  start.after = asked.after;
  const std::vector<PlacedOutput> outputs = declare_repeat(options.repeat, run, start);
  settle_sources(run, start);
  if (asked.life.detach) {
    return run_detached(ui, std::move(run), std::move(start), asked.life,
                        url_in_background(ui, notebook));
  }
  const TemporaryFolder scratch = ui.store().scratch();
  run.scratch = scratch.path();
  const std::unique_ptr<UsedLayer> layer = use_layer(ui.store().root(), start, run);
  ui.store().need_only({prepared.image.digest()});  // it may go on for weeks
  return recorded_run(ui, repeatable(run, options.repeat), start, outputs, notebook).exit.code;
}

void add_run_options(CLI::App& app, const std::shared_ptr<AskedWords>& options) {
  CLI::Option* const volume = app.add_option(
      "-v,--volume", options->mounts, "mount SRC:DST or SRC:DST:ro; SRC may be @STORAGE/FOLDER");
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
  auto options = std::make_shared<AskedWords>();
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
  group_options(app);
  app.footer("example: mlenv run recipe.yaml -- python train.py");
  return [options](Ui& ui) { return run_image(*options, ui); };
}

void declare_export_job(CLI::App& app, const std::string& form,
                        const std::shared_ptr<Action>& action) {
  auto options = std::make_shared<AskedWords>();
  options->job.script = form;
  take_word_of(app.add_option("JOB|IMAGE", options->image,
                              "a job.yaml, an image in the store, or a recipe (built when needed)")
                   ->required(),
               WordKind::runnable);
  add_run_options(app, options);
  app.add_option("--name", options->life.name, "what the job is called");
  app.add_option("--timeout", options->life.timeout, "end it after so long: `90s`, `12h`")
      ->type_name("DURATION");
  add_repeat_options(app, options->repeat);
  add_job_options(app, options->job);
  // Of starting it.
  std::vector<const char*> others = {"--engine", "--dry-run", "--outputs"};
  if (form == "slurm") others.push_back("--hosts");
  if (form != "slurm") others.push_back("--slurm-option");
  for (const char* const other : others) app.remove_option(app.get_option(other));
  add_script_options(app, options->job);
  take_word_of(app.add_option("CMD", options->command, "the command; by default the image's"),
               WordKind::job);
  app.positionals_at_end(false);
  group_options(app);
  app.footer("example: mlenv export " + form + " job.yaml -o job.sh");
  app.callback([=] {
    *action = [options](Ui& ui) {
      if (options->job.nodes.empty() && !is_job_file(options->image)) options->job.nodes = "1";
      return run_image(*options, ui);
    };
  });
}

Action declare_shell(CLI::App& app) {
  auto options = std::make_shared<AskedWords>();
  options->shell = true;
  take_word_of(app.add_option("IMAGE|RUN", options->image,
                              "an image in the store, a recipe (built when needed), or a run that "
                              "goes on")
                   ->required(),
               WordKind::enterable);
  add_run_options(app, options);
  group_options(app);
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
