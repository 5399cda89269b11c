#pragma once
// A run's processes as /proc has them (proc(5)): which they are, what they have used, what they
// wait for. Nothing here throws for a process that ends while it is read: it is left out, as one is
// that may not be seen.
#include <set>

#include "base/files.hpp"
#include "runner/watch/counters.hpp"

namespace mlenv::watch {

struct ThreadName {
  pid_t process = 0;
  pid_t thread = 0;
  friend auto operator<=>(const ThreadName&, const ThreadName&) = default;
};

class ProcReader {
 public:
  /// `/` in life; in tests a folder with recorded files.
  explicit ProcReader(fs::path root = "/") : root_(std::move(root)) {}

  /// All processes of the PID namespace in which `anchor` is, lowest number first; without the
  /// process that holds a run's namespace open and does nothing else. `space` is the namespace's
  /// name; empty: as `anchor` shows it. Where the namespace may not be seen, those of its control
  /// group, unless that is our own.
  std::vector<pid_t> processes_beside(pid_t anchor, std::string space = {}) const;
  /// What they, and the control groups and the machine around them, have counted; `at` is the
  /// caller's.
  Counters count(const std::vector<pid_t>& processes) const;
  /// What their threads do right now; `leading` are those whose waiting counts. Of very many
  /// threads not all are looked at.
  Look look(const std::vector<pid_t>& processes, const std::set<ThreadName>& leading) const;
  /// Variables that the program was started with, `K=V`; none where they may not be seen.
  std::vector<std::string> environment(pid_t process) const;

 private:
  fs::path of(pid_t process) const { return root_ / "proc" / std::to_string(process); }
  std::optional<ProcessCounters> count_process(pid_t id) const;
  std::vector<ThreadCounters> count_threads(const fs::path& folder) const;
  GroupCounters count_group(pid_t process) const;
  std::optional<NetworkCounters> count_network(pid_t process) const;
  HostCounters count_host() const;

  fs::path root_;
};

// For its parts, and their tests.

/// A small file of the kernel's; empty when it cannot be read.
std::string text_in(const fs::path& file);
/// Numbers in a folder's names, sorted; none where it cannot be read.
std::vector<pid_t> numbers_in(const fs::path& folder);

/// A line of /proc/PID/stat, or of a task's.
struct StatLine {
  std::string name;
  char state = '?';
  std::uint64_t major_faults = 0;
  double cpu_seconds = 0;
  double children_seconds = 0;
  std::uint64_t started = 0;
  std::uint64_t resident_bytes = 0;
};
std::optional<StatLine> parse_stat(std::string_view text);
/// How many processors a list such as `0-3,8` names.
std::size_t count_of_cpu_list(std::string_view list);
/// All interfaces of /proc/net/dev but the loopback.
NetworkCounters parse_interfaces(std::string_view text);
/// `total` of the line that begins with `kind`, in seconds; nothing: no such line.
std::optional<double> parse_pressure(std::string_view text, std::string_view kind);

}  // namespace mlenv::watch
