// `mlenv run -d` of a job that its controller drives from here.
#include "base/printable.hpp"
#include "cli/run_job.hpp"
#include "runner/job/detached_job.hpp"
#include "runner/node/version.hpp"

namespace mlenv::cli {

int run_job_detached(Ui& ui, PreparedJob job, std::vector<job::Host> hosts) {
  job::DetachedJob request;
  request.start = job.start;
  // What lies in the folder now is not what a commit's ranks run.
  if (job.choice.code && !job.choice.code->revision.empty()) request.start.project.reset();
  request.file.version = job::own_version();
  request.file.engine = job.choice.engine;
  request.file.store = fs::absolute(ui.store().root());
  request.file.plan = drive_plan(ui, job);
  request.hosts = std::move(hosts);
  const job::StartedJob started = job::start_detached_job(
      request, [&](const std::string& text) { ui.say("mlenv: " + printable(text)); });
  if (ui.options.json) {
    answer_started(ui, {started.id, job.start.name, std::nullopt});
  } else {
    ui.answer(started.id);
  }
  return started.over.value_or(0);
}

}  // namespace mlenv::cli
