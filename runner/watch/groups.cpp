// The control groups around a run: the one of each kind that allows least (cgroup-v2.rst, and
// version 1's documents on cpu and memory).
#include <algorithm>

#include "base/text.hpp"
#include "runner/facts/probe.hpp"
#include "runner/watch/proc.hpp"

namespace mlenv::watch {
namespace {

std::optional<std::uint64_t> file_number_in(const fs::path& file) {
  return number_of(trim(text_in(file)));  // nothing for `max`, and for `-1`
}

std::optional<std::uint64_t> entry(const std::string& text, std::string_view name) {
  const auto value = line_value(text, name, ' ');
  return value ? number_of(*value) : std::nullopt;
}

std::optional<double> quota_of(const fs::path& folder, bool unified) {
  std::optional<std::uint64_t> quota;
  std::optional<std::uint64_t> period;
  if (unified) {
    const std::string text = text_in(folder / "cpu.max");
    const std::vector<std::string_view> words = words_of(text);
    if (words.size() == 2) quota = number_of(words[0]);
    if (words.size() == 2) period = number_of(words[1]);
  } else {
    quota = file_number_in(folder / "cpu.cfs_quota_us");
    period = file_number_in(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void count_cpu(const CgroupFolders& around, GroupCounters& group) {
  for (const fs::path& folder : around.folders) {
    const auto quota = quota_of(folder, around.unified);
    if (!quota || (group.quota_cpus && *group.quota_cpus <= *quota)) continue;
    group.quota_cpus = quota;
    const std::string stat = text_in(folder / "cpu.stat");
    group.periods = entry(stat, "nr_periods");
    group.throttled_periods = entry(stat, "nr_throttled");
  }
}

/// Pages of files, lately used ones among them, which the kernel gives up before it kills anybody;
/// but for those that must be written to a disk first. (What lies in /dev/shm is no file in this
/// sense.)
std::uint64_t droppable(const std::string& stat, bool unified) {
  const auto of = [&](std::string_view in_second, std::string_view in_first) {
    return entry(stat, unified ? in_second : in_first).value_or(0);
  };
  const std::uint64_t files =
      of("inactive_file", "total_inactive_file") + of("active_file", "total_active_file");
  const std::uint64_t unwritten =
      of("file_dirty", "total_dirty") + of("file_writeback", "total_writeback");
  return files - std::min(files, unwritten);
}

void count_memory(const CgroupFolders& around, GroupCounters& group) {
  // Version 1's "no limit" is the largest number of whole pages.
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;
  for (const fs::path& folder : around.folders) {
    const auto limit =
        file_number_in(folder / (around.unified ? "memory.max" : "memory.limit_in_bytes"));
    if (!limit || *limit >= kNoLimit) continue;
    if (group.memory_limit_bytes && *group.memory_limit_bytes <= *limit) continue;
    group.memory_limit_bytes = limit;
    group.memory_bytes =
        file_number_in(folder / (around.unified ? "memory.current" : "memory.usage_in_bytes"));
    if (group.memory_bytes) {
      *group.memory_bytes -=
          std::min(*group.memory_bytes, droppable(text_in(folder / "memory.stat"), around.unified));
    }
    group.memory_shortages = around.unified ? entry(text_in(folder / "memory.events"), "max")
                                            : file_number_in(folder / "memory.failcnt");
  }
}

}  // namespace

GroupCounters ProcReader::count_group(pid_t process) const {
  FactSources from;
  from.root = root_;
  GroupCounters group;
  const auto around = [&](std::string_view controller) {
    CgroupFolders found =
        cgroup_folders(from, controller, std::to_string(process)).value.value_or(CgroupFolders{});
    for (fs::path& folder : found.folders) folder = from.at(folder);
    return found;
  };
  count_cpu(around("cpu"), group);
  count_memory(around("memory"), group);
  return group;
}

}  // namespace mlenv::watch
