#pragma once
// What a run used between two moments. As JSON: schema mlenv.watch/1, kind `sample`.
#include <map>
#include <span>

#include "runner/watch/counters.hpp"
#include "runner/watch/gpus.hpp"

namespace mlenv::watch {

struct ProcessSample {
  std::uint64_t id = 0;
  std::string name;
  double cpus = 0;  ///< processor time per second
  std::uint64_t threads = 0;
  std::uint64_t resident_bytes = 0;
  std::optional<double> read_bytes_per_second;
  std::optional<double> written_bytes_per_second;
  friend bool operator==(const ProcessSample&, const ProcessSample&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("name", self.name);
    visit("cpus", self.cpus);
    visit("threads", self.threads);
    visit("resident_bytes", self.resident_bytes);
    visit("read_bytes_per_second", self.read_bytes_per_second);
    visit("written_bytes_per_second", self.written_bytes_per_second);
  }
};

/// Processor time per second: 1.0 is one processor.
struct CpuSample {
  double used = 0;
  double usable = 1;                ///< that it may run on, by affinity and quota
  double queued = 0;                ///< threads that were ready and had no processor, on average
  double others = 0;                ///< used by what is not of the run
  double machine = 1;               ///< processors of the machine
  std::optional<double> throttled;  ///< share of the quota's periods in which it was used up
  double busiest_thread = 0;        ///< used and queued
  std::string busiest_thread_name;
  std::uint64_t busy_threads = 0;  ///< that ran, or were queued, at least half of the time
  friend bool operator==(const CpuSample&, const CpuSample&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("used", self.used);
    visit("usable", self.usable);
    visit("queued", self.queued);
    visit("others", self.others);
    visit("machine", self.machine);
    visit("throttled", self.throttled);
    visit("busiest_thread", self.busiest_thread);
    visit("busiest_thread_name", self.busiest_thread_name);
    visit("busy_threads", self.busy_threads);
  }
};

/// Looks, by what was found: a thread runs, or else what the leading ones wait for.
struct LookCounts {
  std::uint64_t running = 0;
  std::uint64_t disk = 0;
  std::uint64_t output = 0;
  std::uint64_t network = 0;
  std::uint64_t pipe = 0;
  std::uint64_t time = 0;
  std::uint64_t other = 0;
  std::string waited_at;  ///< a path or address that was met most often; may be empty
  std::uint64_t total() const { return running + disk + output + network + pipe + time + other; }
  friend bool operator==(const LookCounts&, const LookCounts&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("running", self.running);
    visit("disk", self.disk);
    visit("output", self.output);
    visit("network", self.network);
    visit("pipe", self.pipe);
    visit("time", self.time);
    visit("other", self.other);
    visit("waited_at", self.waited_at);
  }
};

struct MemorySample {
  std::uint64_t resident_bytes = 0;  ///< of all processes; what they share counts for each
  std::uint64_t swapped_bytes = 0;
  double major_faults_per_second = 0;
  std::optional<std::uint64_t> group_bytes;  ///< of the control group that has the least limit
  std::optional<std::uint64_t> limit_bytes;
  std::uint64_t shortages = 0;    ///< times that the limit was run into
  std::optional<double> stalled;  ///< share of the time that the machine waited for memory alone
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("resident_bytes", self.resident_bytes);
    visit("swapped_bytes", self.swapped_bytes);
    visit("major_faults_per_second", self.major_faults_per_second);
    visit("group_bytes", self.group_bytes);
    visit("limit_bytes", self.limit_bytes);
    visit("shortages", self.shortages);
    visit("stalled", self.stalled);
  }
};

struct IoSample {
  std::optional<double> read_bytes_per_second;  ///< from devices; nothing: may not be seen
  std::optional<double> written_bytes_per_second;
  std::optional<double> taken_bytes_per_second;  ///< by read(2) from wherever, memory too
  std::optional<double> received_bytes_per_second;
  std::optional<double> sent_bytes_per_second;
  bool network_of_machine = true;  ///< what others receive and send counts too
  std::optional<double> stalled;   ///< share of the time that the machine waited for devices alone
  friend bool operator==(const IoSample&, const IoSample&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("read_bytes_per_second", self.read_bytes_per_second);
    visit("written_bytes_per_second", self.written_bytes_per_second);
    visit("taken_bytes_per_second", self.taken_bytes_per_second);
    visit("received_bytes_per_second", self.received_bytes_per_second);
    visit("sent_bytes_per_second", self.sent_bytes_per_second);
    visit("network_of_machine", self.network_of_machine);
    visit("stalled", self.stalled);
  }
};

struct Sample {
  double seconds = 0;  ///< that it covers
  CpuSample cpu;
  MemorySample memory;
  IoSample io;
  LookCounts looks;
  std::vector<ProcessSample> processes;  ///< the busiest first, at most kMostProcesses
  std::uint64_t process_count = 0;
  std::uint64_t thread_count = 0;
  std::optional<std::vector<GpuNow>> gpus;  ///< those of the run
  std::optional<std::string> gpus_unknown;  ///< why there are none
  friend bool operator==(const Sample&, const Sample&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("seconds", self.seconds);
    visit("cpu", self.cpu);
    visit("memory", self.memory);
    visit("io", self.io);
    visit("looks", self.looks);
    visit("processes", self.processes);
    visit("process_count", self.process_count);
    visit("thread_count", self.thread_count);
    visit("gpus", self.gpus);
    visit("gpus_unknown", self.gpus_unknown);
  }
};

inline constexpr std::size_t kMostProcesses = 32;

/// What came to pass from one to the other; GPUs are the caller's to add.
Sample sample_of(const Counters& before, const Counters& now, std::span<const Look> looks);

}  // namespace mlenv::watch
