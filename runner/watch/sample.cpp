#include "runner/watch/sample.hpp"

#include <algorithm>

namespace mlenv::watch {
namespace {

using ProcessKey = std::pair<pid_t, std::uint64_t>;

std::map<ProcessKey, const ProcessCounters*> by_key(const Counters& counters) {
  std::map<ProcessKey, const ProcessCounters*> found;
  for (const ProcessCounters& one : counters.processes) found[{one.id, one.started}] = &one;
  return found;
}

/// A counter that falls belongs to another, or its process is gone: nothing is known of the
/// difference, and nothing is counted.
template <class T>
double grown(T before, T now) {
  return now > before ? static_cast<double>(now - before) : 0.0;
}
template <class T>
std::optional<double> grown(const std::optional<T>& before, const std::optional<T>& now) {
  if (!before || !now) return std::nullopt;
  return grown(*before, *now);
}
std::optional<double> per_second(std::optional<double> amount, double seconds) {
  if (amount) *amount /= seconds;
  return amount;
}

template <class Member>
std::optional<double> sum(const Counters& counters, Member member) {
  std::optional<double> all;
  for (const ProcessCounters& one : counters.processes) {
    if (one.*member) all = all.value_or(0) + static_cast<double>(*(one.*member));
  }
  return all;
}

/// A process counts what its children used once it has waited for them, so that the sum over all
/// goes on when one ends.
double cpu_of(const Counters& counters) {
  double all = 0;
  for (const ProcessCounters& one : counters.processes) all += one.cpu_seconds;
  return all;
}

class CpuUse {
 public:
  CpuUse(const Counters& before, const Counters& now, double seconds)
      : before_(by_key(before)), seconds_(seconds) {
    for (const ProcessCounters& process : now.processes) add(process);
  }
  CpuSample sample;
  double threads_used = 0;  ///< by the threads that are there now

 private:
  void add(const ProcessCounters& process) {
    const auto found = before_.find({process.id, process.started});
    std::map<pid_t, const ThreadCounters*> earlier;
    if (found != before_.end()) {
      for (const ThreadCounters& one : found->second->threads) earlier[one.id] = &one;
    }
    for (const ThreadCounters& thread : process.threads) {
      const auto was = earlier.find(thread.id);
      add(thread, was == earlier.end() ? ThreadCounters{} : *was->second);
    }
  }
  void add(const ThreadCounters& thread, const ThreadCounters& before) {
    const double used = grown(before.cpu_seconds, thread.cpu_seconds) / seconds_;
    const double queued = grown(before.queued_seconds, thread.queued_seconds) / seconds_;
    threads_used += used;
    sample.queued += queued;
    // A thread is at one place at a time: more than that was counted late.
    const double wanted = std::min(used + queued, 1.0);
    constexpr double kBusy = 0.5;
    if (wanted >= kBusy) ++sample.busy_threads;
    if (wanted > sample.busiest_thread) {
      sample.busiest_thread = wanted;
      sample.busiest_thread_name = thread.name;
    }
  }

  std::map<ProcessKey, const ProcessCounters*> before_;
  double seconds_;
};

CpuSample cpu_sample(const Counters& before, const Counters& now, double seconds) {
  CpuUse use{before, now, seconds};
  CpuSample sample = std::move(use.sample);
  sample.usable = now.usable_cpus;
  sample.machine = static_cast<double>(now.host.processors);
  // Ticks of 10 ms are coarse, and threads' own times are not; of threads that have ended only the
  // process's time tells.
  sample.used = std::max(use.threads_used, grown(cpu_of(before), cpu_of(now)) / seconds);
  sample.used = std::min(sample.used, sample.machine);
  const double machine = grown(before.host.busy_seconds, now.host.busy_seconds) / seconds;
  sample.others = std::max(machine - sample.used, 0.0);
  const auto periods = grown(before.group.periods, now.group.periods);
  const auto throttled = grown(before.group.throttled_periods, now.group.throttled_periods);
  if (periods && throttled) sample.throttled = *periods > 0 ? *throttled / *periods : 0.0;
  return sample;
}

MemorySample memory_sample(const Counters& before, const Counters& now, double seconds) {
  MemorySample sample;
  const auto earlier = by_key(before);
  for (const ProcessCounters& one : now.processes) {
    sample.resident_bytes += one.resident_bytes;
    sample.swapped_bytes += one.swapped_bytes;
    const auto was = earlier.find({one.id, one.started});
    const std::uint64_t faults = was == earlier.end() ? 0 : was->second->major_faults;
    sample.major_faults_per_second += grown(faults, one.major_faults) / seconds;
  }
  sample.group_bytes = now.group.memory_bytes;
  sample.limit_bytes = now.group.memory_limit_bytes;
  sample.shortages = static_cast<std::uint64_t>(
      grown(before.group.memory_shortages, now.group.memory_shortages).value_or(0));
  sample.stalled =
      per_second(grown(before.host.memory_stall_seconds, now.host.memory_stall_seconds), seconds);
  return sample;
}

IoSample io_sample(const Counters& before, const Counters& now, double seconds) {
  IoSample sample;
  const auto rate = [&](auto member) {
    return per_second(grown(sum(before, member), sum(now, member)), seconds);
  };
  sample.read_bytes_per_second = rate(&ProcessCounters::read_bytes);
  sample.written_bytes_per_second = rate(&ProcessCounters::written_bytes);
  sample.taken_bytes_per_second = rate(&ProcessCounters::received_chars);
  if (before.network && now.network) {
    sample.received_bytes_per_second =
        grown(before.network->received_bytes, now.network->received_bytes) / seconds;
    sample.sent_bytes_per_second =
        grown(before.network->sent_bytes, now.network->sent_bytes) / seconds;
    sample.network_of_machine = now.network->whole_machine;
  }
  sample.stalled =
      per_second(grown(before.host.io_stall_seconds, now.host.io_stall_seconds), seconds);
  return sample;
}

std::vector<ProcessSample> processes_of(const Counters& before, const Counters& now,
                                        double seconds) {
  const auto earlier = by_key(before);
  std::vector<ProcessSample> all;
  for (const ProcessCounters& one : now.processes) {
    const auto found = earlier.find({one.id, one.started});
    const ProcessCounters was = found == earlier.end() ? ProcessCounters{} : *found->second;
    ProcessSample sample;
    sample.id = static_cast<std::uint64_t>(one.id);
    sample.name = one.name;
    sample.cpus = grown(was.cpu_seconds, one.cpu_seconds) / seconds;
    sample.threads = one.threads.size();
    sample.resident_bytes = one.resident_bytes;
    if (found != earlier.end()) {
      sample.read_bytes_per_second = per_second(grown(was.read_bytes, one.read_bytes), seconds);
      sample.written_bytes_per_second =
          per_second(grown(was.written_bytes, one.written_bytes), seconds);
    }
    all.push_back(std::move(sample));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const ProcessSample& a, const ProcessSample& b) { return a.cpus > b.cpus; });
  if (all.size() > kMostProcesses) all.resize(kMostProcesses);
  return all;
}

LookCounts counts_of(std::span<const Look> looks) {
  LookCounts counts;
  std::map<std::string, std::size_t> places;
  for (const Look& look : looks) {
    switch (look.running > 0 ? Wait::none : look.leading) {
      case Wait::none:
        ++counts.running;
        continue;
      case Wait::disk:
        ++counts.disk;
        break;
      case Wait::output:
        ++counts.output;
        break;
      case Wait::network:
        ++counts.network;
        break;
      case Wait::pipe:
        ++counts.pipe;
        break;
      case Wait::time:
        ++counts.time;
        break;
      case Wait::other:
        ++counts.other;
        break;
    }
    if (!look.what.empty()) ++places[look.what];
  }
  const auto most =
      std::max_element(places.begin(), places.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != places.end()) counts.waited_at = most->first;
  return counts;
}

}  // namespace

Sample sample_of(const Counters& before, const Counters& now, std::span<const Look> looks) {
  constexpr double kShortestSpan = 1e-3;  // no two moments are nearer
  Sample sample;
  sample.seconds = std::max(now.at - before.at, kShortestSpan);
  sample.cpu = cpu_sample(before, now, sample.seconds);
  sample.memory = memory_sample(before, now, sample.seconds);
  sample.io = io_sample(before, now, sample.seconds);
  sample.looks = counts_of(looks);
  sample.processes = processes_of(before, now, sample.seconds);
  sample.process_count = now.processes.size();
  for (const ProcessCounters& one : now.processes) sample.thread_count += one.threads.size();
  return sample;
}

}  // namespace mlenv::watch
