#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <array>
#include <chrono>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "cli/run_job.hpp"
#include "runner/job/job_output.hpp"
#include "runner/job/plan_file.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/launch/slurm_script.hpp"
#include "runner/local/signal_queue.hpp"
#include "runner/node/program.hpp"
#include "runner/node/version.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// mlenv-node where all nodes find it: in the store, under its digest.
fs::path shared_program(const fs::path& store) {
  const fs::path own = job::node_program();
  const std::string bytes = read_file(own);
  const fs::path folder = store / "node" / Digest::of(bytes).hex();
  const fs::path shared = folder / "mlenv-node";
  if (!fs::exists(shared)) {
    make_folders(folder);
    write_file(shared, bytes);
  }
  fs::permissions(shared, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec);
  return shared;
}

/// What a file gains, on standard output.
class Tail {
 public:
  explicit Tail(fs::path file) : file_(std::move(file)) {}
  void show() {
    if (!fd_) fd_ = Fd{::open(file_.c_str(), O_RDONLY | O_CLOEXEC)};
    std::array<char, std::size_t{64} << 10U> buffer{};
    while (fd_) {
      const ssize_t count = ::read(fd_.get(), buffer.data(), buffer.size());
      if (count <= 0) return;
      job::write_to_streams(true, {buffer.data(), static_cast<std::size_t>(count)});
    }
  }

 private:
  fs::path file_;
  Fd fd_;
};

void say_state(const Ui& ui, const std::string& id, const job::SlurmState& state) {
  std::string text = fmt::format("mlenv: job {} of Slurm: {}", id, state.state);
  if (!state.reason.empty() && state.reason != "None") text += " (" + state.reason + ")";
  if (!state.nodes.empty()) text += " on " + state.nodes;
  ui.say(printable(text));
}

/// To its end; a signal cancels it.
job::SlurmState follow(const Ui& ui, const std::string& id, const fs::path& output) {
  constexpr std::chrono::seconds kAsk{1};
  constexpr std::chrono::minutes kMostSilence{10};
  constexpr int kLook = 200;  // milliseconds
  const SignalQueue signals;
  Tail tail{output};
  job::SlurmState last;
  auto asked = Clock::now() - kAsk;
  auto heard = Clock::now();
  while (true) {
    pollfd waiting{signals.fd(), POLLIN, 0};
    (void)::poll(&waiting, 1, kLook);
    while (signals.next() != 0) job::cancel_in_slurm(id);
    tail.show();
    if (Clock::now() - asked < kAsk) continue;
    asked = Clock::now();
    const std::optional<job::SlurmState> state = job::ask_slurm(id);
    if (!state && asked - heard > kMostSilence) {
      throw failure("no-slurm", "Slurm has not answered for ten minutes")
          .hint(fmt::format("job {} may still run: `scontrol show job {}`", id, id));
    }
    if (!state) continue;
    heard = asked;
    if (state->state != last.state) say_state(ui, id, *state);
    last = *state;
    if (!last.is_over()) continue;
    tail.show();
    return last;
  }
}

}  // namespace

int run_in_slurm(Ui& ui, PreparedJob job) {
  const fs::path store = fs::absolute(ui.store().root());
  const fs::path folder = store / "jobs" / new_run_id(std::chrono::system_clock::now());
  const job::SlurmScript script{
      job.choice.job.name.empty() ? job.start.image.name : job.choice.job.name,
      (folder / "out").string(),
      job.choice.site,
      {shared_program(store).string(), "lead", folder.string()}};
  const std::string text = job::slurm_script(job.choice.job, script);
  if (job.choice.dry_run) {
    if (ui.options.json) {
      ui.answer(
          canonical({{"schema", "mlenv.job-script/1"}, {"engine", "slurm"}, {"script", text}}));
    } else {
      ui.answer_exactly(text.substr(0, text.size() - 1));
    }
    return 0;
  }
  job::PlanFile file;
  file.version = job::own_version();
  file.engine = "slurm";
  file.store = store;
  file.plan = drive_plan(ui, job);
  make_folders(folder);
  fs::permissions(folder, fs::perms::owner_all);
  write_file(folder / "job", job::render_plan_file(file));
  write_file(folder / "job.sh", text);
  const std::string id = job::submit_to_slurm(folder / "job.sh");
  const job::SlurmState end = follow(ui, id, folder / "out");
  const std::optional<std::string> record = read_file_if_exists(folder / "record");
  if (end.status() != 0 && record) {
    ui.say(fmt::format("mlenv: the job ended with status {}; `mlenv runs show {}` tells more",
                       end.status(), record->substr(0, record->find('\n'))));
  }
  return end.status();
}

}  // namespace mlenv::cli
