#include "cli/preflight.hpp"

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "cli/command_tree.hpp"
#include "cli/interrupt.hpp"
#include "cli/platforms.hpp"
#include "cli/preflight_nccl.hpp"
#include "cli/recipes_use.hpp"
#include "cli/run_job.hpp"
#include "cli/run_verdict.hpp"
#include "cli/usage.hpp"
#include "images/inspect/inspect.hpp"
#include "runner/job/detached_job.hpp"
#include "runner/job/nccl_ring.hpp"
#include "runner/job/node_verdict.hpp"
#include "runner/launch/slurm_steps.hpp"
#include "runner/local/machine.hpp"
#include "runner/node/program.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {
namespace {

struct PreflightWords {
  std::string image;
  bool nccl = false;
  bool rdma = false;
  JobWords job;
};

void check_nccl(const PreflightWords& options) {
  if (options.nccl && options.image.empty()) {
    throw usage_error("usage", "`--nccl` needs an image")
        .because("NCCL is the image's, and runs in it")
        .hint("`mlenv preflight --nccl --nodes 2 --hosts gpu1,gpu2 IMAGE`");
  }
  if (options.rdma && !options.nccl) {
    throw usage_error("usage", "`--rdma` is of `--nccl`")
        .because("links are measured over TCP")
        .hint("leave it out, or add `--nccl`");
  }
}

JobChoice choice_of(const JobWords& words) {
  const RunWords run;
  const RunChoice choice;
  const Life life;
  return *parse_job_words(words, {run, choice, life, ""}, std::nullopt);
}

/// In an allocation: outside there are no nodes yet whose links could be measured.
std::unique_ptr<job::NodeStarter> starter_in_allocation() {
  const auto variables = caller_variables();
  const auto nodes = variables.find("SLURM_JOB_NODELIST");
  if (nodes == variables.end()) {
    throw usage_error("usage", "`mlenv preflight --engine slurm` runs in an allocation")
        .because("which nodes Slurm will give is not known before")
        .hint(
            "`salloc --nodes 4 mlenv preflight --nodes 4 --engine slurm`; a job in the queue "
            "measures its own nodes: `mlenv run --preflight`");
  }
  return job::slurm_steps({nodes->second, job::node_program()});
}

/// What nodes are proven to have before their links are measured.
void take_image(Ui& ui, const std::string& name, job::DrivePlan& plan) {
  const Interruption interruption{ui.options.quiet || ui.options.json};
  const bool of_recipe = is_recipe_path(name) && !ui.store().find_image(name);
  const Image image = of_recipe ? built_image(ui, name, false) : image_named(ui, name);
  require_runnable(image, name);
  plan.image_digest = image.digest().str();
  plan.start.image = {name, plan.image_digest, std::nullopt};
  plan.run.config = image.settings;
  plan.image_facts = facts_to_judge(ui, image, false);
}

std::unique_ptr<job::NodeStarter> starter_for(Ui& ui, const JobChoice& choice,
                                              const std::vector<job::Host>& hosts) {
  if (choice.engine == "slurm") return starter_in_allocation();
  return job::starter_of(choice.engine, fs::absolute(ui.store().root()), choice.job.nodes.most,
                         hosts);
}

/// Where there are links for it: what is broken is the answer then.
void look_at_nccl(Ui& ui, const JobChoice& choice, const std::vector<job::Host>& hosts,
                  const job::DrivePlan& plan, job::Preflight& found) {
  if (found.verdict == "broken") {
    return job::add_nccl(found, job::not_measured("links are broken"));
  }
  if (choice.engine == "local" && choice.job.nodes.most > 1) {
    return job::add_nccl(found,
                         job::not_measured("nodes of engine local share this machine's GPUs, "
                                           "and NCCL takes each GPU once"));
  }
  const std::unique_ptr<job::NodeStarter> starter = starter_for(ui, choice, hosts);
  measure_nccl(ui, *starter, plan, found);
}

int preflight_command(const PreflightWords& options, Ui& ui) {
  check_nccl(options);
  JobChoice choice = choice_of(options.job);
  choice.job.options.rdma = options.rdma;
  job::DrivePlan plan;
  if (!options.image.empty()) take_image(ui, options.image, plan);
  const std::vector<job::Host> hosts = hosts_for(choice);
  const std::unique_ptr<job::NodeStarter> starter = starter_for(ui, choice, hosts);
  plan.job = choice.job;
  plan.job.preflight = true;
  plan.preflight_alone = true;
  plan.id = new_run_id(std::chrono::system_clock::now());
  std::optional<job::Preflight> found;
  job::DriveEvents events;
  events.notice = [&](const std::string& text) { ui.say("mlenv: " + printable(text)); };
  events.ready = job::NodeChecks{plan, events.notice};
  events.preflight = [&](const job::Preflight& preflight) { found = preflight; };
  const job::JobOutcome outcome = job::drive(ui.store(), *starter, plan, events);
  if (!found) return outcome.exit_code;
  if (options.nccl) look_at_nccl(ui, choice, hosts, plan, *found);
  if (ui.options.json) {
    ui.answer(job::render_preflight(*found));
  } else {
    ui.answer_lines(job::preflight_text(*found));
  }
  return found->verdict == "fine" ? 0 : kAnswerIsNo;
}

}  // namespace

Action declare_preflight(CLI::App& app) {
  auto options = std::make_shared<PreflightWords>();
  take_word_of(app.add_option("IMAGE", options->image,
                              "an image that the nodes are to have, and to be able to run"),
               WordKind::runnable);
  JobWords& words = options->job;
  app.add_option("--nodes", words.nodes, "how many nodes")->type_name("N")->required();
  app.add_option("--engine", words.engine, "how they are reached: local, ssh, slurm")
      ->type_name("ENGINE");
  take_word_of(
      app.add_option("--hosts", words.hosts, "of ssh: a file with a host a line, or a,b,c"),
      WordKind::file);
  app.add_flag("--nccl", options->nccl,
               "NCCL's all-reduce over the nodes' GPUs, too, in the image");
  app.add_flag("--rdma", options->rdma, "of --nccl: give it the InfiniBand devices");
  app.add_option("--interface", words.interface, "the network interface by which nodes meet")
      ->type_name("NAME");
  app.footer("example: mlenv preflight --nodes 2 --hosts gpu1,gpu2");
  return [options](Ui& ui) { return preflight_command(*options, ui); };
}

}  // namespace mlenv::cli
