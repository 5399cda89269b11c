// /proc and control groups as recorded files.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstring>

#include "runner/watch/proc.hpp"
#include "runner/watch/waits.hpp"

namespace mlenv::watch {
namespace {

class WatchProc : public ::testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) {
    make_folders((root() / path).parent_path());
    write_file(root() / path, text, false);
  }
  void link(const fs::path& path, const std::string& target) {
    make_folders((root() / path).parent_path());
    fs::create_symlink(target, root() / path);
  }
  /// A process with one thread.
  void process(int id, const std::string& name, char state, const std::string& space) {
    const std::string number = std::to_string(id);
    const fs::path folder = "proc/" + number;
    const std::string stat = number + " (" + name + ") " + state +
                             " 1 1 1 0 -1 4194304 127 0 7 0 250 50 30 20 20 0 1 0 1288791 2990080 "
                             "416 18446744073709551615 1 2 3 0 0 0 0 0 0 1 0 0 17 0 0 0 0 0 0\n";
    write(folder / "stat", stat);
    write(folder / "comm", name + "\n");
    write(folder / "status", "Name:\t" + name + "\nVmSwap:\t  12 kB\nCpus_allowed_list:\t0-1\n");
    write(folder / "io", "rchar: 900\nwchar: 5\nread_bytes: 4096\nwrite_bytes: 512\n");
    write(folder / "task" / number / "stat", stat);
    write(folder / "task" / number / "schedstat", "1500000000 250000000 17\n");
    link(folder / "ns/pid", space);
    link(folder / "ns/net", "net:[2]");
  }
  void machine() {
    write("proc/stat",
          "cpu  100 0 100 900 5 10 10 5 0 0\ncpu0 1 2 3\ncpu1 1 2 3\ncpu2 0 0 0\ncpu3 0 0 0\nintr "
          "5\n");
    write("proc/pressure/io", "some avg10=1.0 total=5\nfull avg10=0.0 avg60=0 total=2500000\n");
    link("proc/self/ns/net", "net:[1]");
  }
  fs::path root() const { return folder_.path(); }
  ProcReader reader() const { return ProcReader{root()}; }

 private:
  TemporaryFolder folder_{temporary_root()};
};

TEST_F(WatchProc, processes_of_another_user) {
  process(100, "mlenv-keeper", 'S', "hidden");
  process(101, "python", 'R', "hidden");
  process(102, "bash", 'S', "pid:[1]");
  for (const char* id : {"100", "101"}) {
    fs::remove(root() / "proc" / id / "ns/pid");
    fs::remove(root() / "proc" / id / "ns/net");
    write(fs::path("proc") / id / "cgroup", "0::/docker/abc\n");
  }
  write("proc/102/cgroup", "0::/user.slice\n");
  write("proc/self/cgroup", "0::/user.slice\n");
  write("proc/101/net/dev", "  eth0: 5 0 0 0 0 0 0 0 6 0\n");
  machine();
  EXPECT_EQ(reader().processes_beside(100), std::vector<pid_t>{101});
  EXPECT_FALSE(reader().count({101}).network) << "nobody knows whose these are";
  // A group that is ours as well says nothing.
  write("proc/self/cgroup", "0::/docker/abc\n");
  EXPECT_TRUE(reader().processes_beside(100).empty());
}

TEST_F(WatchProc, processes_of_a_namespace) {
  process(100, "mlenv-init", 'S', "pid:[7]");
  process(101, "python", 'R', "pid:[7]");
  process(102, "bash", 'S', "pid:[1]");
  write("proc/uptime", "1 1\n");
  EXPECT_EQ(reader().processes_beside(100), std::vector<pid_t>{101});
  // In a container of another runtime the first process is the job itself.
  process(200, "python", 'R', "pid:[8]");
  EXPECT_EQ(reader().processes_beside(200), std::vector<pid_t>{200});
  EXPECT_TRUE(reader().processes_beside(999).empty());
  // A first process that does not show its namespace: who holds that says its name.
  fs::remove(root() / "proc/100/ns/pid");
  EXPECT_EQ(reader().processes_beside(100, "pid:[7]"), std::vector<pid_t>{101});
}

TEST_F(WatchProc, counters) {
  machine();
  process(101, "a) name (", 'S', "pid:[7]");
  write("proc/101/net/dev",
        "Inter-|   Receive\n face |bytes\n    lo: 500 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "  eth0: 1000 1 0 0 0 0 0 0 70 1 0 0 0 0 0 0\n  ib0: 1 1 0 0 0 0 0 0 2 1 0 0 0 0 0 0\n");
  const Counters found = reader().count({101, 500});
  ASSERT_EQ(found.processes.size(), 1U);
  const ProcessCounters& one = found.processes[0];
  EXPECT_EQ(one.name, "a) name (");
  EXPECT_DOUBLE_EQ(one.cpu_seconds, 3.5) << "300 ticks of its own, 50 of its children";
  EXPECT_EQ(one.started, 1288791U);
  EXPECT_EQ(one.major_faults, 7U);
  EXPECT_EQ(one.swapped_bytes, 12U * 1024);
  EXPECT_EQ(one.read_bytes, 4096U);
  EXPECT_EQ(one.written_bytes, 512U);
  EXPECT_EQ(one.received_chars, 900U);
  ASSERT_EQ(one.threads.size(), 1U);
  EXPECT_DOUBLE_EQ(one.threads[0].cpu_seconds, 1.5);
  EXPECT_DOUBLE_EQ(one.threads[0].queued_seconds, 0.25);
  EXPECT_DOUBLE_EQ(found.usable_cpus, 2) << "of four it may run on two";
  EXPECT_EQ(found.host.processors, 4U);
  EXPECT_DOUBLE_EQ(found.host.busy_seconds, 2.25);
  EXPECT_EQ(found.host.io_stall_seconds, 2.5);
  EXPECT_EQ(found.host.memory_stall_seconds, std::nullopt) << "this kernel does not tell";
  ASSERT_TRUE(found.network.has_value());
  EXPECT_EQ(found.network->received_bytes, 1001U);
  EXPECT_EQ(found.network->sent_bytes, 72U);
  EXPECT_FALSE(found.network->whole_machine);
}

TEST_F(WatchProc, what_may_not_be_seen_is_not_zero) {
  machine();
  process(101, "python", 'S', "pid:[7]");
  fs::remove(root() / "proc/101/io");
  fs::remove(root() / "proc/101/task/101/schedstat");
  const Counters found = reader().count({101});
  EXPECT_EQ(found.processes[0].read_bytes, std::nullopt);
  EXPECT_DOUBLE_EQ(found.processes[0].threads[0].cpu_seconds, 3) << "from ticks";
  EXPECT_EQ(found.network, std::nullopt);
}

TEST_F(WatchProc, groups_of_version_2) {
  machine();
  process(101, "python", 'S', "pid:[7]");
  write("proc/101/cgroup", "0::/outer/run\n");
  write("proc/self/mountinfo", "31 1 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
  const fs::path outer = "sys/fs/cgroup/outer";
  write(outer / "cpu.max", "100000 100000\n");
  write(outer / "cpu.stat", "usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 9\n");
  write(outer / "memory.max", "max\n");
  write(outer / "run/cpu.max", "max 100000\n");
  write(outer / "run/memory.max", "1000000\n");
  write(outer / "run/memory.current", "900000\n");
  write(
      outer / "run/memory.stat",
      "anon 5\nfile_dirty 30000\nfile_writeback 20000\ninactive_file 100000\nactive_file 150000\n");
  write(outer / "run/memory.events", "low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\n");
  const Counters found = reader().count({101});
  EXPECT_EQ(found.group.quota_cpus, 1.0);
  EXPECT_EQ(found.group.periods, 40U);
  EXPECT_EQ(found.group.throttled_periods, 30U);
  EXPECT_DOUBLE_EQ(found.usable_cpus, 1);
  EXPECT_EQ(found.group.memory_limit_bytes, 1000000U);
  // Files of 250000 bytes can be dropped, but for 50000 that must be written first.
  EXPECT_EQ(found.group.memory_bytes, 700000U);
  EXPECT_EQ(found.group.memory_shortages, 3U);
}

TEST_F(WatchProc, groups_of_version_1) {
  machine();
  process(101, "python", 'S', "pid:[7]");
  write("proc/101/cgroup", "4:memory:/run\n1:cpu,cpuacct:/run\n0::/\n");
  write("proc/self/mountinfo",
        "32 1 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "33 1 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "34 1 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup rw\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/run/cpu.cfs_quota_us", "150000\n");
  write("sys/fs/cgroup/cpu/run/cpu.cfs_period_us", "100000\n");
  write("sys/fs/cgroup/cpu/run/cpu.stat", "nr_periods 8\nnr_throttled 2\nthrottled_time 7\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/run/memory.limit_in_bytes", "500\n");
  write("sys/fs/cgroup/memory/run/memory.usage_in_bytes", "400\n");
  write("sys/fs/cgroup/memory/run/memory.failcnt", "9\n");
  write("sys/fs/cgroup/memory/run/memory.stat",
        "inactive_file 1\ntotal_inactive_file 20\ntotal_active_file 40\ntotal_dirty 10\n");
  const Counters found = reader().count({101});
  EXPECT_EQ(found.group.quota_cpus, 1.5);
  EXPECT_EQ(found.group.throttled_periods, 2U);
  EXPECT_DOUBLE_EQ(found.usable_cpus, 1.5);
  EXPECT_EQ(found.group.memory_limit_bytes, 500U);
  EXPECT_EQ(found.group.memory_bytes, 350U);
  EXPECT_EQ(found.group.memory_shortages, 9U);
}

TEST_F(WatchProc, lines_that_are_none) {
  EXPECT_EQ(parse_stat(""), std::nullopt);
  EXPECT_EQ(parse_stat("12 (python R 1"), std::nullopt);
  EXPECT_EQ(parse_stat("12 (python) R 1 2 3"), std::nullopt);
  EXPECT_EQ(count_of_cpu_list("0-3,8\n"), 5U);
  EXPECT_EQ(count_of_cpu_list(""), 0U);
  EXPECT_EQ(count_of_cpu_list("3-1,x"), 0U);
  EXPECT_EQ(parse_pressure("some avg10=0 total=4\n", "full"), std::nullopt);
  EXPECT_FALSE(parse_system_call("").has_value());
  EXPECT_FALSE(parse_system_call("x 0x3").has_value());
}

/// A thread in a system call, what its descriptor 3 leads to, and what it waits for by that.
class WatchWaits : public WatchProc {
 protected:
  Waiting waits(char state, const std::string& call, const std::string& target = {}) {
    const fs::path folder = "proc/101";
    write(folder / "task/101/syscall", call);
    fs::remove(root() / folder / "fd/3");
    if (!target.empty()) link(folder / "fd/3", target);
    return waiting_of(root() / folder, 101, state);
  }
  static std::string call(long number, const std::string& arguments = "0x3 0x0 0x0 0x0 0x0 0x0") {
    return std::to_string(number) + " " + arguments + " 0x7ffd 0x7f2a\n";
  }
};

TEST_F(WatchWaits, files) {
  const Waiting found = waits('D', call(SYS_read), "/data/train.bin");
  EXPECT_EQ(found.wait, Wait::disk);
  EXPECT_EQ(found.what, "/data/train.bin");
  EXPECT_EQ(waits('S', call(SYS_pread64), "/mnt/fuse/x").wait, Wait::disk);
  EXPECT_EQ(waits('D', "-1 0x7ffd 0x7f2a\n").wait, Wait::disk) << "a page of a mapped file";
  EXPECT_EQ(waits('S', "-1 0x7ffd 0x7f2a\n").wait, Wait::other);
  EXPECT_EQ(waits('D', call(SYS_openat, "0xffffff9c 0x5")).wait, Wait::disk);
  EXPECT_EQ(waits('D', "").wait, Wait::disk) << "who may not look goes by the state";
  EXPECT_EQ(waits('S', "").wait, Wait::other);
  EXPECT_EQ(waits('S', call(SYS_read), "/dev/pts/1").wait, Wait::other);
}

TEST_F(WatchWaits, output) {
  EXPECT_EQ(waits('D', call(SYS_fsync), "/out/model.pt").wait, Wait::output);
  EXPECT_EQ(waits('S', call(SYS_write), "pipe:[5]").wait, Wait::output);
}

TEST_F(WatchWaits, other_processes_and_the_network) {
  EXPECT_EQ(waits('S', call(SYS_read), "pipe:[5]").wait, Wait::pipe);
  EXPECT_EQ(waits('S', call(SYS_recvfrom), "socket:[77]").wait, Wait::pipe);
  ASSERT_EQ(::mkfifo((root() / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(waits('S', call(SYS_read), (root() / "fifo").string()).wait, Wait::pipe);
  write("proc/101/net/tcp",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
        "timeout inode\n"
        "   0: 0100007F:9C40 0500000A:01BB 01 00000000:00000000 00:00000000 00000000     0        "
        "0 77 1\n");
  const Waiting found = waits('S', call(SYS_recvfrom), "socket:[77]");
  EXPECT_EQ(found.wait, Wait::network);
  EXPECT_EQ(found.what, "10.0.0.5:443");
}

TEST_F(WatchWaits, polling) {
  write("proc/101/net/tcp", "  sl\n   0: 0100007F:9C40 0500000A:01BB 01 0:0 0:0 0 0 0 77 1\n");
  std::string memory(64, '\0');
  const pollfd polled{3, POLLIN, 0};
  std::memcpy(memory.data() + 16, &polled, sizeof polled);
  write("proc/101/mem", memory);
  EXPECT_EQ(waits('S', call(SYS_ppoll, "0x10 0x1 0x0"), "socket:[77]").wait, Wait::network);
  EXPECT_EQ(waits('S', call(SYS_ppoll, "0x10 0x1 0x0"), "pipe:[5]").wait, Wait::pipe);
  EXPECT_EQ(waits('S', call(SYS_ppoll, "0x0 0x0 0x0")).wait, Wait::time);
  EXPECT_EQ(waits('S', call(SYS_ppoll, "0xffff 0x1 0x0"), "pipe:[5]").wait, Wait::other);
  write("proc/101/fdinfo/9", "pos:\t0\nflags:\t02\ntfd:        3 events:       19 data: 3\n");
  EXPECT_EQ(waits('S', call(SYS_epoll_pwait, "0x9 0x0"), "socket:[77]").wait, Wait::network);
}

TEST_F(WatchWaits, nothing_that_is_input) {
  EXPECT_EQ(waits('R', "running\n").wait, Wait::none);
  EXPECT_EQ(waits('S', "running\n").wait, Wait::none);
  EXPECT_EQ(waits('S', call(SYS_clock_nanosleep)).wait, Wait::time);
  EXPECT_EQ(waits('S', call(SYS_futex)).wait, Wait::other);
  EXPECT_EQ(waits('S', call(SYS_read), "anon_inode:[eventfd]").wait, Wait::other);
}

TEST_F(WatchProc, addresses) {
  EXPECT_EQ(address_of("0100007F:1F90"), "127.0.0.1:8080");
  EXPECT_EQ(address_of("00000000000000000000000001000000:0050"), "[::1]:80");
  EXPECT_EQ(address_of("0100007F"), "");
  EXPECT_EQ(address_of("xyz:0050"), "");
}

TEST_F(WatchProc, a_look_goes_by_the_threads_that_work) {
  process(101, "python", 'S', "pid:[7]");
  process(102, "idle", 'S', "pid:[7]");
  write("proc/101/task/101/syscall", std::to_string(SYS_read) + " 0x3 0x0\n");
  write("proc/102/task/102/syscall", std::to_string(SYS_read) + " 0x3 0x0\n");
  link("proc/101/fd/3", "/data/a");
  link("proc/102/fd/3", "pipe:[5]");
  const Look found = reader().look({101, 102}, {{101, 101}});
  EXPECT_EQ(found.running, 0U);
  EXPECT_EQ(found.leading, Wait::disk);
  EXPECT_EQ(found.what, "/data/a");
  EXPECT_EQ(reader().look({101, 102}, {{102, 102}}).leading, Wait::pipe);
  process(103, "busy", 'R', "pid:[7]");
  EXPECT_EQ(reader().look({101, 102, 103}, {}).running, 1U);
}

}  // namespace
}  // namespace mlenv::watch
