#include "cli/preflight_nccl.hpp"

#include "base/printable.hpp"
#include "base/scratch_folder.hpp"
#include "runner/job/code.hpp"
#include "runner/job/nccl_ring.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/node/program.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {
namespace {

/// Longer than the probe's own patience, which tells more.
constexpr std::chrono::seconds kDeadline{180};

/// The program travels as a job's code does.
std::string program_as_code(Store& store) {
  const ScratchFolder folder;
  const fs::path code = folder.path() / "code";  // the folder itself has its lock
  make_folders(code);
  const fs::path program = code / job::kNcclProgram;
  fs::copy_file(job::probe_program(), program);
  fs::permissions(program, static_cast<fs::perms>(0755));
  return job::snapshot_of(store, code).digest.str();
}

std::vector<std::string> node_names(const job::Preflight& found) {
  std::vector<std::string> names;
  for (const job::PreflightNode& node : found.nodes) names.push_back(printable(node.name));
  return names;
}

job::DrivePlan nccl_plan(Store& store, const job::DrivePlan& links, const job::Preflight& found) {
  job::DrivePlan plan;
  plan.job = links.job;
  plan.job.preflight = false;
  plan.job.strategy = job::Strategy::plain;
  plan.job.deadline = kDeadline;
  plan.job.argv = job::nccl_words(found);
  plan.id = new_run_id(std::chrono::system_clock::now());
  plan.image_digest = links.image_digest;
  plan.code_digest = program_as_code(store);
  plan.start.image = links.start.image;
  plan.start.argv = plan.job.argv;
  plan.start.options = links.job.options;
  plan.run.config = links.run.config;
  plan.run.argv = plan.job.argv;
  plan.run.options = links.job.options;
  plan.run.env = {"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET"};
  plan.gpus = job::kGpusIfAny;
  return plan;
}

std::string failure_of(const job::JobOutcome& outcome) {
  if (outcome.exit_code == 0) return {};
  if (outcome.attempts.empty() || !outcome.attempts.back().failure) {
    return fmt::format("the probe ended with status {}", outcome.exit_code);
  }
  const job::AttemptResult& attempt = outcome.attempts.back();
  const job::FirstFailure& first = *attempt.failure;
  if (first.what == job::FirstFailure::What::node) {
    return fmt::format("node {} was lost: {}", printable(first.node), printable(first.why));
  }
  return fmt::format("{}: the probe {}", printable(first.node),
                     job::why_it_failed(first, attempt.ranks.at(first.rank)));
}

}  // namespace

void measure_nccl(Ui& ui, job::NodeStarter& starter, const job::DrivePlan& links,
                  job::Preflight& found) {
  const job::DrivePlan plan = nccl_plan(ui.store(), links, found);
  job::NcclLines lines{found.nodes.size()};
  job::DriveEvents events;
  events.notice = [&](const std::string& text) { ui.say("mlenv: " + printable(text)); };
  events.line = [&](std::uint64_t, std::uint64_t rank, const std::string& line) {
    lines.line(rank, line);
  };
  const job::JobOutcome outcome = job::drive(ui.store(), starter, plan, events);
  job::add_nccl(found, lines.result(node_names(found), failure_of(outcome)));
}

}  // namespace mlenv::cli
