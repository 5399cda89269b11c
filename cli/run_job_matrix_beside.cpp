// `mlenv run --matrix --nodes` with engines local and ssh: a controller for each variation, so many
// side by side.
#include "base/error.hpp"
#include "cli/run_job_matrix.hpp"
#include "cli/run_matrix_keeper.hpp"
#include "cli/slurm_array_follow.hpp"
#include "recipes/text.hpp"
#include "runner/job/attached_job.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/node/version.hpp"

namespace mlenv::cli {
namespace {

using matrix::MatrixRecord;

/// What all variations' jobs are.
class Jobs {
 public:
  Jobs(Ui& ui, PreparedJob& job, HostShare share, const OpenedMatrix& opened, MatrixKeeper& keeper)
      : matrix_(*job.matrix),
        run_(job.run),
        share_(std::move(share)),
        opened_(opened),
        keeper_(keeper) {
    shared_.start = job.start;
    // What lies in the folder now is not what a commit's ranks run.
    if (job.choice.code && !job.choice.code->revision.empty()) shared_.start.project.reset();
    shared_.file.version = job::own_version();
    shared_.file.engine = job.choice.engine;
    shared_.file.store = fs::absolute(ui.store().root());
    shared_.file.plan = drive_plan(ui, job);
    if (job.choice.engine != "local") return;  // sources are of the nodes
    // What one variation's ranks put in their place, the next one's do not mount.
    settle(shared_.file.plan.run);
  }

  std::unique_ptr<Supervised> start(std::size_t index, std::size_t slot) const {
    const job::JobVariation variation = job_variation(matrix_, run_, opened_, index);
    job::DetachedJob one = shared_;
    one.file.plan = job::plan_of(std::move(one.file.plan), variation);
    one.start = job::variation_start(std::move(one.start), variation);
    if (!share_.hosts.empty()) one.hosts = share_.hosts.at(slot);
    return std::make_unique<job::AttachedJob>(
        one, [this, index](const std::string& sentence) { keeper_.note(index, sentence); });
  }

  /// `node1, node2 are`
  std::string hosts_of(std::size_t slot) const {
    std::vector<std::string> names;
    for (const job::Host& host : share_.hosts.at(slot)) names.push_back(host.name);
    return join(names, ", ") + (names.size() == 1 ? " is" : " are");
  }

 private:
  const JobMatrix matrix_;
  const LocalRun run_;  ///< with `{lr}` in its command
  const HostShare share_;
  const OpenedMatrix& opened_;
  MatrixKeeper& keeper_;
  job::DetachedJob shared_;
};

void say_begin_beside(const Ui& ui, const PreparedJob& job, const OpenedMatrix& opened) {
  if (ui.options.json) return;
  const MatrixRecord& record = opened.record;
  const std::string all = counted(record.variations.size(), "variation");
  std::string text =
      opened.resumed ? fmt::format("{} of {} are left", not_done(record).size(), all) : all;
  text += ", each on " + nodes_text(job.choice.job.nodes);
  if (record.at_once > 1) text += fmt::format(", {} at a time", record.at_once);
  ui.say(fmt::format("matrix {}: {}; results in {}", record.id, text, record.results));
}

/// An array that was left to Slurm may still work on them.
std::set<std::uint64_t> not_in_slurm(const fs::path& results, const fs::path& store) {
  const FollowedArray array = array_at(results, store);
  if (array.variations.empty()) return {};
  throw refusal("matrix-busy", "array {} of Slurm works on the matrix in `{}`", array.id,
                results.string())
      .hint(fmt::format("`--engine slurm` follows it, `scancel {}` ends it", array.id));
}

matrix::DriveEnd drive_all(Ui& ui, PreparedJob& job, OpenedMatrix& opened, HostShare share) {
  const MatrixRecord& record = opened.record;
  const matrix::DrivePlan plan{not_done(record), share.at_once, job.matrix->choice.words.fail_fast,
                               runs_folder(ui.store().root()), !share.hosts.empty()};
  MatrixKeeper keeper{ui, opened};
  const Jobs jobs{ui, job, std::move(share), opened, keeper};
  matrix::DriveEvents events;
  events.start = [&](std::size_t index, std::size_t slot) { return jobs.start(index, slot); };
  keeper.watch(events);
  events.left_out = [&](const matrix::Ended& one) {
    keeper.put_back(one.variation, fmt::format("waits again; {} left out: {}",
                                               jobs.hosts_of(one.slot), one.failure->what()));
  };
  matrix::DriveEnd end = drive(plan, events);
  keeper.finish(end.signal, end.refused);
  return end;
}

}  // namespace

HostShare divide_hosts(const std::vector<job::Host>& hosts, std::uint64_t nodes,
                       std::optional<std::size_t> at_once, std::size_t variations) {
  HostShare share;
  const std::size_t fit = std::max<std::size_t>(1, hosts.size() / nodes);
  if (!hosts.empty() && at_once && *at_once > fit) {
    throw usage_error("usage", "`--parallel {}` of {} each takes {} hosts, and there {} {}",
                      *at_once, counted(nodes, "node"), *at_once * nodes,
                      hosts.size() == 1 ? "is" : "are", hosts.size())
        .hint(fmt::format("`--parallel {}`", fit));
  }
  share.at_once = std::min(at_once.value_or(hosts.empty() ? 1 : fit), variations);
  for (std::size_t slot = 0; !hosts.empty() && slot < share.at_once; ++slot) {
    // Those beyond `nodes` stand by for one that is lost.
    const auto at = [&](std::size_t part) {
      return hosts.begin() + static_cast<std::ptrdiff_t>(part * hosts.size() / share.at_once);
    };
    share.hosts.emplace_back(at(slot), at(slot + 1));
  }
  return share;
}

int run_matrix_beside(Ui& ui, PreparedJob job) {
  const MatrixChoice& choice = job.matrix->choice;
  const std::vector<job::Host> hosts = hosts_for(job.choice);
  OpenedMatrix opened = open_matrix(ui, choice, matrix_job(job), [&](const fs::path& results) {
    return not_in_slurm(results, ui.store().root());
  });
  MatrixRecord& record = opened.record;
  const std::size_t open = not_done(record).size();
  if (open == 0) {
    if (!ui.options.json) ui.say(fmt::format("matrix {}: all is done", record.id));
    return answer_matrix(ui, record, 0);
  }
  try {
    HostShare share = divide_hosts(hosts, job.choice.job.nodes.most, choice.words.at_once, open);
    record.state = "running";
    record.at_once = share.at_once;
    say_begin_beside(ui, job, opened);
    const matrix::DriveEnd end = drive_all(ui, job, opened, std::move(share));
    return answer_matrix(ui, record, end.signal);
  } catch (const Error&) {
    if (!opened.resumed && nothing_ran(record)) opened.folder.take_back(record);
    throw;
  }
}

}  // namespace mlenv::cli
