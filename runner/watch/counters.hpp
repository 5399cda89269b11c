#pragma once
// What the kernel has counted for the processes of a run up to a moment. Counters only grow; what
// was used between two moments is their difference (sample.hpp).
#include <sys/types.h>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace mlenv::watch {

/// What a thread does at the instant at which it is looked at.
enum class Wait {
  none,     ///< it runs, or would if it had a processor
  disk,     ///< for a file's content: a device, network file system or FUSE
  output,   ///< until something is written out
  network,  ///< for a socket of TCP or UDP
  pipe,     ///< for another process: a pipe or local socket
  time,     ///< it sleeps
  other,    ///< a lock, a child, a device, anything else; also where it cannot be seen
};
inline constexpr std::size_t kWaits = 7;
/// `disk`, as answers in JSON have it.
std::string name_of(Wait wait);

struct ThreadCounters {
  pid_t id = 0;
  std::string name;
  char state = '?';           ///< proc_pid_stat(5): R, S, D, T, Z …
  double cpu_seconds = 0;     ///< on a processor
  double queued_seconds = 0;  ///< ready to run without one (/proc/PID/schedstat)
};

struct ProcessCounters {
  pid_t id = 0;
  std::uint64_t started = 0;  ///< ticks since boot: numbers are reused
  std::string name;
  double cpu_seconds =
      0;  ///< of all its threads, past ones too, and of children that it waited for
  std::uint64_t resident_bytes = 0;
  std::uint64_t swapped_bytes = 0;
  std::uint64_t major_faults = 0;               ///< pages that had to be read from a device
  std::optional<std::uint64_t> read_bytes;      ///< from devices; nothing: may not be seen
  std::optional<std::uint64_t> written_bytes;   ///< the same, to them
  std::optional<std::uint64_t> received_chars;  ///< by read(2) and its kin, from wherever
  std::vector<ThreadCounters> threads;
};

/// The control group that holds the run and nothing else.
struct GroupCounters {
  std::optional<std::uint64_t> periods;            ///< of its quota
  std::optional<std::uint64_t> throttled_periods;  ///< in which it was used up
  std::optional<double> quota_cpus;
  std::optional<std::uint64_t> memory_bytes;
  std::optional<std::uint64_t> memory_limit_bytes;
  std::optional<std::uint64_t> memory_shortages;  ///< times that the limit was run into
};

/// Bytes of all interfaces but the loopback.
struct NetworkCounters {
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_bytes = 0;
  bool whole_machine = true;  ///< the run has the host's network, whose other users count too
};

struct HostCounters {
  double busy_seconds = 0;  ///< of all processors
  std::uint64_t processors = 1;
  std::optional<double> memory_stall_seconds;  ///< /proc/pressure/memory, `full`
  std::optional<double> io_stall_seconds;      ///< /proc/pressure/io, `full`
};

struct Counters {
  double at = 0;  ///< seconds of a clock that nobody sets
  std::vector<ProcessCounters> processes;
  double usable_cpus = 1;  ///< processors that it may run on
  GroupCounters group;
  std::optional<NetworkCounters> network;
  HostCounters host;
};

/// One look at what the threads do.
struct Look {
  std::uint64_t running = 0;   ///< threads that run or could
  Wait leading = Wait::other;  ///< what those wait for that have worked most lately
  std::string what;            ///< a path or an address; may be empty
};

}  // namespace mlenv::watch
