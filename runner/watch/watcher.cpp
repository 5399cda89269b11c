#include "runner/watch/watcher.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/facts/sources.hpp"
#include "runner/local/control.hpp"
#include "runner/local/stage.hpp"

namespace mlenv::watch {
namespace {

bool has_ended(const Anchor& anchor) {
  pollfd ended{anchor.ended.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) != 0;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The number that a process has for us; 0 or less where our namespace does not show it.
pid_t process_behind(const Fd& pidfd) {
  const std::string text = text_in(fmt::format("/proc/self/fdinfo/{}", pidfd.get()));
  const auto number = line_value(text, "Pid", ':');
  return number ? static_cast<pid_t>(number_of(*number).value_or(0)) : 0;
}

/// As links in /proc/PID/ns have it (namespaces(7)); empty where it is none.
std::string name_of_space(const Fd& space) {
  struct stat status {};
  if (::fstat(space.get(), &status) != 0) return {};
  return fmt::format("pid:[{}]", status.st_ino);
}

}  // namespace

std::optional<Anchor> anchor_of_run(const fs::path& run_folder, std::string_view id) {
  Packet packet;
  try {
    const Fd connection = connect_to_run(run_folder, id);
    if (!send_packet(connection.get(), render_where())) return std::nullopt;
    // Keys and signals wait meanwhile.
    constexpr std::chrono::seconds kMost{5};
    const auto asked = std::chrono::steady_clock::now();
    packet = receive_packet_within(connection.get(), kMost);
    if (packet.bytes.empty()) {
      if (std::chrono::steady_clock::now() - asked >= kMost) throw no_answer_of_run(id);
      return std::nullopt;
    }
    (void)parse_outcome(packet.bytes);
  } catch (const Error& error) {
    if (error.code() != "run-ended") throw;
    return std::nullopt;
  }
  if (packet.files.empty()) return std::nullopt;
  Anchor anchor{std::move(packet.files.front())};
  anchor.process = process_behind(anchor.ended);
  if (packet.files.size() > 1) anchor.space = name_of_space(packet.files[1]);
  if (anchor.process <= 0) {
    throw failure("run-unseen", "the processes of run `{}` cannot be seen from here", id)
        .because("they are in a PID namespace that is neither this process's nor below it")
        .hint("watch it from outside of this container, or from that in which it was started");
  }
  return anchor;
}

Watcher::Watcher(FindAnchor find_anchor, std::vector<std::string> devices)
    : find_anchor_(std::move(find_anchor)), devices_(std::move(devices)) {}

bool Watcher::refresh() {
  if (anchor_ && has_ended(*anchor_)) {
    anchor_.reset();
    before_.reset();
    looks_.clear();
  }
  if (!anchor_) anchor_ = find_anchor_();
  processes_ =
      anchor_ ? proc_.processes_beside(anchor_->process, anchor_->space) : std::vector<pid_t>{};
  return !processes_.empty();
}

void Watcher::look() {
  if (!processes_.empty()) looks_.push_back(proc_.look(processes_, leading_));
}

/// The few threads that work most: what they wait for is what the job waits for, and what idle ones
/// wait for is not.
void Watcher::follow_threads(const Counters& before, const Counters& now) {
  constexpr double kKept = 0.8;
  constexpr double kOfMost = 0.1;
  constexpr std::size_t kMost = 8;
  std::map<ThreadName, double> earlier;
  for (const ProcessCounters& process : before.processes) {
    for (const ThreadCounters& one : process.threads) {
      earlier[{process.id, one.id}] = one.cpu_seconds;
    }
  }
  std::map<ThreadName, double> worked;
  for (const ProcessCounters& process : now.processes) {
    for (const ThreadCounters& one : process.threads) {
      const ThreadName name{process.id, one.id};
      const auto was = earlier.find(name);
      const double used = one.cpu_seconds - (was == earlier.end() ? 0.0 : was->second);
      const auto before_that = worked_.find(name);
      worked[name] =
          std::max(used, 0.0) + (before_that == worked_.end() ? 0.0 : kKept * before_that->second);
    }
  }
  worked_ = std::move(worked);
  std::vector<std::pair<double, ThreadName>> ranked;
  for (const auto& [name, amount] : worked_) ranked.emplace_back(amount, name);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  leading_.clear();
  for (const auto& [amount, name] : ranked) {
    const bool much = leading_.empty() || amount >= kOfMost * ranked.front().first;
    if (!much || leading_.size() == kMost) break;
    leading_.insert(name);
  }
}

std::optional<Sample> Watcher::sample() {
  if (!refresh()) {
    before_.reset();
    return std::nullopt;
  }
  Counters counters = proc_.count(processes_);
  counters.at = now();
  if (counters.processes.empty()) return std::nullopt;
  environment_ = proc_.environment(counters.processes.front().id);
  follow_threads(before_.value_or(Counters{}), counters);
  std::optional<Sample> sample;
  if (before_) {
    if (looks_.empty()) look();
    sample = sample_of(*before_, counters, looks_);
    if (has_gpus(devices_)) {
      GpuAnswer answer = gpus_.ask();
      if (answer.gpus) sample->gpus = gpus_of(devices_, *std::move(answer.gpus));
      sample->gpus_unknown = std::move(answer.why);
    }
  }
  before_ = std::move(counters);
  looks_.clear();
  return sample;
}

}  // namespace mlenv::watch
