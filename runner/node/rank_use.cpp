#include "runner/node/rank_use.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace mlenv::job {
namespace {

/// The thread that has computed most, of each process: what it waits for is what the process does.
std::set<watch::ThreadName> leading_of(const watch::Counters& counters) {
  std::set<watch::ThreadName> leading;
  for (const watch::ProcessCounters& process : counters.processes) {
    const auto most = std::max_element(
        process.threads.begin(), process.threads.end(),
        [](const auto& a, const auto& b) { return a.cpu_seconds < b.cpu_seconds; });
    if (most != process.threads.end()) leading.insert({process.id, most->id});
  }
  return leading;
}

/// A process of it is, and no other does anything.
bool is_stopped(const watch::Counters& counters) {
  bool stopped = false;
  for (const watch::ProcessCounters& process : counters.processes) {
    std::size_t held = 0;
    for (const watch::ThreadCounters& thread : process.threads) {
      if (thread.state == 'R') return false;
      // `t` is one that a debugger holds.
      if (thread.state == 'T' || thread.state == 't') ++held;
    }
    stopped = stopped || (held > 0 && held == process.threads.size());
  }
  return stopped;
}

}  // namespace

std::optional<RankUse> RankUseReader::now() {
  constexpr std::chrono::seconds kEvery{2};
  constexpr int kMostFailures = 5;
  const auto time = Clock::now();
  if (failures_ >= kMostFailures || (asked_ && time - *asked_ < kEvery)) return std::nullopt;
  asked_ = time;
  if (!anchor_) {
    ++failures_;
    try {
      anchor_ = watch::anchor_of_run(run_folder_, id_);
    } catch (const Error&) {
      return std::nullopt;
    }
    if (!anchor_) return std::nullopt;
    failures_ = 0;
  }
  const std::vector<pid_t> processes = proc_.processes_beside(anchor_->process, anchor_->space);
  const watch::Counters counters = proc_.count(processes);
  if (counters.processes.empty()) return std::nullopt;
  RankUse use;
  for (const watch::ProcessCounters& process : counters.processes) {
    use.cpu_seconds += process.cpu_seconds;
    use.threads += process.threads.size();
    for (const watch::ThreadCounters& thread : process.threads) {
      use.queued_seconds += thread.queued_seconds;
    }
  }
  use.stopped = is_stopped(counters);
  const watch::Look look = proc_.look(processes, leading_of(counters));
  use.waits_for = look.running > 0 ? "running" : watch::name_of(look.leading);
  use.waits_at = look.what;
  return use;
}

}  // namespace mlenv::job
