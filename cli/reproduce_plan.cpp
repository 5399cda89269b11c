#include "cli/reproduce_plan.hpp"

#include <unistd.h>
#include <algorithm>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "cli/run_devices.hpp"
#include "cli/run_engine.hpp"
#include "cli/run_repeat.hpp"
#include "cli/run_verdict.hpp"
#include "cli/run_vm.hpp"
#include "cli/settings.hpp"
#include "images/unpack.hpp"
#include "recipes/text.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/local/job.hpp"
#include "runner/local/own_results.hpp"
#include "runner/local/rdma.hpp"
#include "runner/record/code_state.hpp"
#include "runner/record/secrets.hpp"
#include "runner/repeat/deterministic.hpp"

namespace mlenv::cli {
namespace {

Error cannot(const RunRecord& record, std::string_view why) {
  return usage_error("cannot-reproduce", "run `{}` cannot be reproduced: {}", record.start.id, why);
}

/// What ranks write lies on the nodes, in mounts of theirs: no record has it.
void require_one_machine(const RunRecord& record) {
  constexpr const char* kHint =
      "start the job again as it was started, and compare what it wrote; `mlenv diff` tells what "
      "else changed between the two";
  if (record.start.launch) {
    throw cannot(record, "it is a job on nodes, and what ranks write is not recorded").hint(kHint);
  }
  if (const auto& rank = record.start.job) {
    throw cannot(record, fmt::format("it is rank {} of the job `{}`, and needs the others",
                                     rank->rank, rank->job))
        .hint(kHint);
  }
}

void require_result(const RunRecord& record) {
  require_one_machine(record);
  if (!record.end || record.state == "refused") {
    throw cannot(record,
                 record.state == "running" ? "it goes on" : "it has no end to compare with");
  }
  if (const auto& layer = record.start.layer; layer && layer->from) {
    throw cannot(record, fmt::format("it started from what run `{}` kept, which is no part of "
                                     "its record and may have changed",
                                     *layer->from))
        .hint("make an image of it: what was added belongs into a recipe");
  }
  if (record.end->outputs.empty()) {
    throw cannot(record, "it declared no outputs, so that there is nothing to compare")
        .hint("run it with `--outputs PATH`, for each file or folder that is its result");
  }
}

Image image_of(Ui& ui, const RecordedImage& recorded) {
  const auto found = ui.store().find_image(recorded.digest);
  if (found) return ui.store().image(*found);
  throw failure("image-gone", "the store has not got the image of this run")
      .because(fmt::format("it was {}, called `{}`", recorded.digest, recorded.name))
      .hint("build it from its lock (`mlenv build --locked`), or pull it by that digest");
}

std::string variable_name(const std::string& word) { return word.substr(0, word.find('=')); }

bool is_masked(const RecordedVariable& variable) {
  return !variable.value || variable.value->find(kMasked) != std::string::npos;
}
bool is_masked(const std::string& word) { return word.find(kMasked) != std::string::npos; }

/// Command and variables, with what the record masks given again; one error for all that is not.
void restore_words(const ReproduceOptions& options, const RunStart& start, LocalRun& run,
                   std::vector<std::string>& causes) {
  std::vector<std::string> missing;
  const auto given = [&](const std::string& name) {
    return std::any_of(options.env.begin(), options.env.end(),
                       [&](const std::string& word) { return variable_name(word) == name; });
  };
  for (const RecordedVariable& variable : start.env) {
    if (!is_masked(variable)) {
      run.env.push_back(variable.name + "=" + *variable.value);
    } else if (!given(variable.name)) {
      missing.push_back(fmt::format("the variable `{0}`: `-e {0}`", variable.name));
    }
  }
  run.argv = options.command.empty() ? start.argv : options.command;
  if (options.command.empty() &&
      std::any_of(start.argv.begin(), start.argv.end(),
                  [](const std::string& word) { return is_masked(word); })) {
    missing.emplace_back("the command, which holds masked words: whole, behind `--`");
  }
  if (!missing.empty()) {
    Error error =
        usage_error("masked", "the record of run `{}` masks what must be given again", start.id);
    for (const std::string& one : missing) error.because(one);
    throw Error{std::move(error)};
  }
  if (!options.command.empty() && without_secrets(options.command) != start.argv) {
    throw usage_error("usage", "the command is not that of run `{}`", start.id)
        .because("recorded is " + join(start.argv, " "))
        .hint("give the same one, secrets in their places");
  }
  for (const std::string& word : options.env) {
    run.env.push_back(word);
    const auto recorded = std::find_if(
        start.env.begin(), start.env.end(),
        [&](const RecordedVariable& variable) { return variable.name == variable_name(word); });
    if (recorded == start.env.end() || !is_masked(*recorded)) {
      causes.push_back(
          fmt::format("variable `{}`: set by `-e`, not as recorded", variable_name(word)));
    }
  }
}

void restore_mounts(const RunStart& start, LocalRun& run) {
  for (const RecordedMount& mount : start.mounts) {
    if (!fs::exists(mount.source)) {
      throw failure("mount-gone", "`{}`, which the run had at `{}`, is not there", mount.source,
                    mount.target)
          .hint("bring it back");
    }
    run.mounts.push_back(
        {mount.source, mount.target, mount.read_only, {}, mount.storage.value_or("")});
    // But for a variation's results, whose path is the person's (own_results.hpp).
    if (!is_own_results(run, run.mounts.back())) run.settled.emplace_back(mount.source);
  }
}

// --- code ----------------------------------------------------------------------------------------

/// They were no part of the code then, either.
std::vector<std::string> outputs_in_project(const RunStart& start) {
  std::vector<std::string> within;
  for (const DeclaredOutput& output : start.outputs) {
    if (output.in_project) within.push_back(*output.in_project);
  }
  return within;
}

CodeState not_recorded() {
  const std::string why = "it was not recorded";
  return {unknown<std::string>(why), unknown<std::string>(why),
          unknown<std::vector<std::string>>(why), unknown<std::string>(why)};
}

bool same_code(const CodeState& a, const CodeState& b) {
  return a.commit && b.commit && *a.commit == *b.commit && a.changed_digest && b.changed_digest &&
         *a.changed_digest == *b.changed_digest;
}

std::string changed_text(const CodeState& code) {
  constexpr std::size_t kMost = 5;
  if (!code.changed) return "unknown: " + code.changed.source;
  if (code.changed->empty()) return "nothing";
  std::vector<std::string> names = *code.changed;
  const bool more = names.size() > kMost;
  if (more) names.resize(kMost);
  return "`" + join(names, "`, `") + (more ? "`, …" : "`");
}

Error code_differs(const RunStart& start, const CodeState& then, const CodeState& now) {
  Error error =
      failure("code-differs", "the code in `{}` is not that of run `{}`", *start.project, start.id);
  const auto commit = [](const CodeState& code) {
    return code.commit ? code.commit->substr(0, 12) : "unknown (" + code.commit.source + ")";
  };
  error.because(fmt::format("commit: {}, now {}", commit(then), commit(now)));
  error.because(
      fmt::format("changed since that commit: {}, now {}", changed_text(then), changed_text(now)));
  return std::move(error).hint(
      "bring that code back, or compare with what is there now: `--with-present-code`");
}

/// The project's folder as the run had it.
fs::path code_folder(const ReproduceOptions& options, const RunRecord& record,
                     const fs::path& scratch, Reproduction& plan) {
  fs::path project = *record.start.project;
  if (!fs::is_directory(project)) {
    throw failure("mount-gone", "`{}`, the project of run `{}`, is not there", project.string(),
                  record.start.id)
        .hint("bring the folder back");
  }
  const CodeState then = record.code.value_or(not_recorded());
  const CodeState now = code_state(project, outputs_in_project(record.start));
  plan.code_from = "present";
  if (same_code(then, now)) return project;
  if (options.with_present_code) {
    plan.code_from = "present-changed";
    plan.causes.emplace_back("code: that of now, by `--with-present-code`");
    return project;
  }
  const bool clean = then.commit && then.changed && then.changed->empty();
  if (!clean) throw code_differs(record.start, then, now);
  const fs::path folder = scratch / "code";
  make_folders(folder);
  fs::path code = export_commit(project, *then.commit, folder);
  plan.code_from = "commit";
  plan.code = then;
  return code;
}

// --- devices -------------------------------------------------------------------------------------

/// GPUs by the name that they had; others as they are.
DeviceChoice devices_of(const RunStart& start) {
  DeviceChoice choice;
  choice.gpus.kind = GpuChoice::Kind::none;
  for (const std::string& word : start.devices) {
    const auto name = parse_cdi_name(word);
    if (!name) continue;
    if (name->kind == kNvidiaGpu) {
      choice.gpus.kind = GpuChoice::Kind::named;
      choice.gpus.devices.push_back(*name);
    } else {
      choice.devices.push_back(*name);
    }
  }
  return choice;
}

// --- runtime -------------------------------------------------------------------------------------

/// Docker's daemon is root's, and so would be what it leaves of a layer in a user's store.
bool has_throwaway_layers(const ContainerEngine& engine) {
  return engine.is_podman() || (::geteuid() == 0 && !engine.rootless);
}

/// That of the run, unless another one is asked for.
void choose_recorded_runtime(Ui& ui, const ReproduceOptions& options, const RunStart& start,
                             Reproduction& plan) {
  const std::string recorded = start.runtime.value_or("");
  const std::string name = recorded.substr(0, recorded.find(' '));
  LocalRun& run = plan.run;
  run.runtime =
      options.runtime.empty() ? (is_engine(name) ? name : recorded) : runtime_of(options.runtime);
  if (is_engine(run.runtime)) {
    run.engine = while_doing(
        fmt::format("repeating the run with {} (`--runtime builtin` repeats it without)",
                    run.runtime),
        [&] { return engine_for(ui, run.runtime, plan.image); });
    if (!has_throwaway_layers(*run.engine)) {
      if (!options.runtime.empty()) {
        throw usage_error("cannot-reproduce", "{} cannot repeat a run for this user", run.runtime)
            .because("its daemon is root's, and would leave what the run writes to root")
            .hint("leave `--runtime` out, or write `--runtime podman`");
      }
      run.engine.reset();
      run.runtime.clear();
    }
  }
  plan.start.runtime.reset();
  if (!run.runtime.empty()) plan.start.runtime = run.runtime;
  if (run.engine) plan.start.runtime = run.engine->title();
  if (plan.start.runtime != start.runtime) {
    plan.causes.push_back(fmt::format("runtime: {}, now {}",
                                      start.runtime.value_or("the built-in one"),
                                      plan.start.runtime.value_or("the built-in one")));
  }
}

void note_switches(const RunStart& then, const RunStart& now, std::vector<std::string>& causes) {
  if (then.mlenv != now.mlenv) {
    causes.push_back(fmt::format("mlenv: {}, now {}", then.mlenv, now.mlenv));
  }
  if (then.deterministic && then.deterministic != now.deterministic) {
    causes.emplace_back("`--deterministic` sets other switches in this version of mlenv");
  }
  if (!then.deterministic) causes.emplace_back("the run was not `--deterministic`");
}

}  // namespace

Reproduction plan_reproduction(Ui& ui, const ReproduceOptions& options, const RunRecord& record,
                               const fs::path& scratch) {
  const RunStart& start = record.start;
  require_result(record);
  Reproduction plan{image_of(ui, start.image), {}, start, {}, "none", {}, {}};
  LocalRun& run = plan.run;
  restore_words(options, start, run, plan.causes);
  restore_mounts(start, run);
  run.config = plan.image.settings;
  run.workdir = start.workdir.value_or("");
  choose_recorded_runtime(ui, options, start, plan);
  run.options = start.options;
  run.scratch = scratch;
  std::vector<std::string> paths;
  for (const DeclaredOutput& output : start.outputs) paths.push_back(output.path);
  if (start.project) run.project = *start.project;
  if (run.project) run.settled.push_back(*run.project);
  require_settled(run, job_mounts(run));  // before the code there is read
  plan.outputs = placed_outputs(run, paths);
  if (start.project) run.project = code_folder(options, record, scratch, plan);
  run.throwaway_mounts = true;
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    const PlacedOutput& output = plan.outputs[i];
    run.fresh.push_back({output.mount, output.within, start.outputs[i].existed});
  }
  const DeviceChoice devices = devices_of(start);
  const bool with_gpus = devices.gpus.kind == GpuChoice::Kind::named;
  if (start.checked) {
    run.first_libraries =
        require_verdict(ui, plan.image, {start.image.name, devices.gpus, with_gpus});
  }
  run.devices = devices_for(devices, with_gpus).edits;
  if (run.options.rdma && has_rdma()) add_rdma(run.options, run.devices);
  const bool in_vm = run.runtime == kVmRuntime;
  if (in_vm) {
    const std::string network = run.options.network == "host" ? "" : run.options.network;
    check_vm_options(run.options, network);
    check_vm_devices(devices.gpus, devices.devices);
  } else {
    run.options.disk_bytes.reset();
  }
  if (!run.engine) run.trees = unpack_image(ui.store(), plan.image, ui.progress());
  if (in_vm) run.vm = vm_for(ui, run, plan.image);
  plan.start.mlenv = MLENV_VERSION;
  plan.start.argv = without_secrets(run.argv);
  plan.start.reproduces = start.id;
  // It is in the foreground, once, under a name that is free.
  plan.start.name.reset();
  plan.start.layer.reset();
  plan.start.detached = false;
  plan.start.restart = RestartPolicy{}.text;
  plan.start.timeout_seconds.reset();
  if (start.deterministic) {
    run = repeatable(run, {true, start.deterministic->seed, {}});
    plan.start.deterministic = determinism(start.deterministic->seed);
  }
  note_switches(start, plan.start, plan.causes);
  return plan;
}

}  // namespace mlenv::cli
