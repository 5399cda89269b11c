#include <gtest/gtest.h>

#include "runner/watch/sample.hpp"

namespace mlenv::watch {
namespace {

ThreadCounters thread(pid_t id, double cpu, double queued) {
  return {id, "worker", 'R', cpu, queued};
}

ProcessCounters process(pid_t id, std::uint64_t started, std::vector<ThreadCounters> threads) {
  ProcessCounters found;
  found.id = id;
  found.started = started;
  found.name = "python";
  for (const ThreadCounters& one : threads) found.cpu_seconds += one.cpu_seconds;
  found.threads = std::move(threads);
  return found;
}

Counters at(double seconds, std::vector<ProcessCounters> processes) {
  Counters counters;
  counters.at = seconds;
  counters.processes = std::move(processes);
  counters.usable_cpus = 4;
  counters.host.processors = 8;
  return counters;
}

TEST(WatchSample, processors) {
  Counters before = at(10, {process(5, 1, {thread(5, 3, 1), thread(6, 2, 0)})});
  Counters now = at(12, {process(5, 1, {thread(5, 5, 1), thread(6, 2.5, 1.5), thread(7, 0.1, 0)})});
  before.host.busy_seconds = 100;
  now.host.busy_seconds = 106;
  const Sample sample = sample_of(before, now, {});
  EXPECT_DOUBLE_EQ(sample.seconds, 2);
  EXPECT_NEAR(sample.cpu.used, (2 + 0.5 + 0.1) / 2, 1e-9);
  EXPECT_DOUBLE_EQ(sample.cpu.queued, 0.75);
  EXPECT_NEAR(sample.cpu.others, 3 - 1.3, 1e-9);
  EXPECT_DOUBLE_EQ(sample.cpu.usable, 4);
  EXPECT_DOUBLE_EQ(sample.cpu.busiest_thread, 1) << "two threads wanted a whole one each";
  EXPECT_EQ(sample.cpu.busy_threads, 2U);
  EXPECT_EQ(sample.thread_count, 3U);
  EXPECT_EQ(sample.cpu.throttled, std::nullopt);
}

TEST(WatchSample, a_number_that_is_used_again_is_another_process) {
  const Counters before = at(0, {process(5, 1, {thread(5, 100, 50)})});
  const Counters now = at(1, {process(5, 9, {thread(5, 0.25, 0)})});
  const Sample sample = sample_of(before, now, {});
  EXPECT_DOUBLE_EQ(sample.cpu.used, 0.25);
  EXPECT_DOUBLE_EQ(sample.cpu.queued, 0);
  EXPECT_DOUBLE_EQ(sample.processes[0].cpus, 0.25);
}

TEST(WatchSample, what_ended_processes_used_is_their_parents) {
  // The child had used 2 s when it was seen, and 2.5 s when its parent waited for it.
  ProcessCounters parent = process(5, 1, {thread(5, 1, 0)});
  const Counters before = at(0, {parent, process(8, 2, {thread(8, 2, 0)})});
  parent.cpu_seconds = 1 + 2.5;
  const Sample sample = sample_of(before, at(1, {parent}), {});
  EXPECT_DOUBLE_EQ(sample.cpu.used, 0.5);
}

TEST(WatchSample, counters_that_fall_count_nothing) {
  Counters before = at(0, {process(5, 1, {thread(5, 1, 0)}), process(6, 1, {thread(6, 9, 0)})});
  Counters now = at(1, {process(5, 1, {thread(5, 1, 0)})});
  before.network = NetworkCounters{100, 100, false};
  now.network = NetworkCounters{50, 300, false};
  const Sample sample = sample_of(before, now, {});
  EXPECT_DOUBLE_EQ(sample.cpu.used, 0);
  EXPECT_EQ(sample.io.received_bytes_per_second, 0.0);
  EXPECT_EQ(sample.io.sent_bytes_per_second, 200.0);
  EXPECT_FALSE(sample.io.network_of_machine);
}

TEST(WatchSample, disks_and_quota) {
  ProcessCounters seen = process(5, 1, {});
  seen.read_bytes = 1000;
  seen.written_bytes = 10;
  Counters before = at(0, {seen, process(6, 1, {})});
  before.group.periods = 10;
  before.group.throttled_periods = 1;
  before.host.io_stall_seconds = 1;
  seen.read_bytes = 5000;
  seen.written_bytes = 20;
  Counters now = at(2, {seen, process(6, 1, {})});
  now.group.periods = 30;
  now.group.throttled_periods = 16;
  now.host.io_stall_seconds = 2;
  const Sample sample = sample_of(before, now, {});
  EXPECT_EQ(sample.io.read_bytes_per_second, 2000.0);
  EXPECT_EQ(sample.io.written_bytes_per_second, 5.0);
  EXPECT_EQ(sample.io.stalled, 0.5);
  EXPECT_EQ(sample.cpu.throttled, 0.75);
  EXPECT_EQ(sample.processes[1].read_bytes_per_second, std::nullopt) << "may not be seen";
}

TEST(WatchSample, looks) {
  const std::vector<Look> looks = {{2, Wait::disk, "/data/a"},
                                   {0, Wait::disk, "/data/b"},
                                   {0, Wait::disk, "/data/b"},
                                   {0, Wait::network, "10.0.0.5:443"},
                                   {0, Wait::other, ""}};
  const Sample sample = sample_of(at(0, {}), at(1, {}), looks);
  EXPECT_EQ(sample.looks.total(), 5U);
  EXPECT_EQ(sample.looks.running, 1U);
  EXPECT_EQ(sample.looks.disk, 2U);
  EXPECT_EQ(sample.looks.network, 1U);
  EXPECT_EQ(sample.looks.other, 1U);
  EXPECT_EQ(sample.looks.waited_at, "/data/b");
}

TEST(WatchSample, the_busiest_processes_come_first_and_no_more_than_some) {
  std::vector<ProcessCounters> now;
  for (pid_t id = 1; id <= 40; ++id) now.push_back(process(id, 1, {thread(id, 0.01 * id, 0)}));
  const Sample sample = sample_of(at(0, {}), at(1, now), {});
  ASSERT_EQ(sample.processes.size(), kMostProcesses);
  EXPECT_EQ(sample.processes.front().id, 40U);
  EXPECT_EQ(sample.process_count, 40U);
}

}  // namespace
}  // namespace mlenv::watch
