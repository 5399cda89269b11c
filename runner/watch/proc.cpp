#include "runner/watch/proc.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "runner/engine/keeper/protocol.hpp"
#include "runner/facts/sources.hpp"
#include "runner/watch/waits.hpp"

namespace mlenv::watch {
namespace {

constexpr std::uint64_t kBytesPerKilobyte = 1024;

double seconds_of_ticks(std::uint64_t ticks) {
  static const long per_second = ::sysconf(_SC_CLK_TCK);
  return static_cast<double>(ticks) / static_cast<double>(per_second);
}

std::uint64_t word_number(const std::vector<std::string_view>& words, std::size_t index) {
  return index < words.size() ? number_of(words[index]).value_or(0) : 0;
}

/// `NAME: 12 kB`
std::optional<std::uint64_t> counter_after(std::string_view text, std::string_view name) {
  const std::optional<std::string> value = line_value(text, name, ':');
  if (!value) return std::nullopt;
  const std::vector<std::string_view> words = words_of(*value);
  return words.empty() ? std::nullopt : number_of(words.front());
}

std::string link_text(const fs::path& path) {
  std::error_code error;
  return fs::read_symlink(path, error).string();
}

/// How much the other waits of leading threads say, most first.
std::size_t rank_of(Wait wait) {
  constexpr std::array kOrder = {Wait::none, Wait::disk, Wait::network, Wait::output,
                                 Wait::pipe, Wait::time, Wait::other};
  return static_cast<std::size_t>(std::find(kOrder.begin(), kOrder.end(), wait) - kOrder.begin());
}

/// Of a run's namespace or container: they hold it open, and do nothing else.
bool keeps_namespace(std::string_view name) {
  return trim(name) == "mlenv-init" || trim(name) == keeper::kProcessName;
}

void look_at_thread(const fs::path& process, pid_t id, bool leads, Look& found) {
  const auto stat = parse_stat(text_in(process / "task" / std::to_string(id) / "stat"));
  if (!stat || stat->state == 'Z') return;
  if (stat->state == 'R') ++found.running;
  // Of the others those alone are asked further that wait for a device.
  if (!leads && stat->state != 'D') return;
  Waiting waiting = waiting_of(process, id, stat->state);
  if (!leads && waiting.wait != Wait::disk) return;
  const std::size_t before = rank_of(found.leading);
  const std::size_t rank = rank_of(waiting.wait);
  if (rank < before || (rank == before && found.what.empty())) {
    found.leading = waiting.wait;
    found.what = std::move(waiting.what);
  }
}

}  // namespace

std::string text_in(const fs::path& file) {
  const Fd fd{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string text;
  std::array<char, 8192> buffer{};
  ssize_t count = 0;
  while (fd && (count = ::read(fd.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

std::vector<pid_t> numbers_in(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (fs::directory_iterator at{folder, error}, end; !error && at != end; at.increment(error)) {
    if (const auto found = number_of(at->path().filename().string())) {
      numbers.push_back(static_cast<pid_t>(*found));
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::optional<StatLine> parse_stat(std::string_view text) {
  // `12 (a name) S 1 …`: the name may hold anything, a `)` too.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open) return std::nullopt;
  const std::vector<std::string_view> words = words_of(text.substr(close + 1));
  constexpr std::size_t kFewest = 22;
  if (words.size() < kFewest) return std::nullopt;
  // Numbers as in proc_pid_stat(5), from the third on.
  const auto field = [&](std::size_t index) { return word_number(words, index - 3); };
  StatLine line;
  line.name = text.substr(open + 1, close - open - 1);
  line.state = words.front().front();
  line.major_faults = field(12);
  line.cpu_seconds = seconds_of_ticks(field(14) + field(15));
  line.children_seconds = seconds_of_ticks(field(16) + field(17));
  line.started = field(22);
  line.resident_bytes = field(24) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return line;
}

std::size_t count_of_cpu_list(std::string_view list) {
  std::size_t count = 0;
  for (const std::string_view part : split(trim(list), ',')) {
    const std::size_t dash = part.find('-');
    const auto first = number_of(part.substr(0, dash));
    const auto last = dash == part.npos ? first : number_of(part.substr(dash + 1));
    if (first && last && *last >= *first) count += *last - *first + 1;
  }
  return count;
}

NetworkCounters parse_interfaces(std::string_view text) {
  NetworkCounters all;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == line.npos || trim(line.substr(0, colon)) == "lo") continue;
    const std::vector<std::string_view> words = words_of(line.substr(colon + 1));
    constexpr std::size_t kSent = 8;
    all.received_bytes += word_number(words, 0);
    all.sent_bytes += word_number(words, kSent);
  }
  return all;
}

std::optional<double> parse_pressure(std::string_view text, std::string_view kind) {
  constexpr double kMicroseconds = 1e6;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t total = line.find("total=");
    if (!line.starts_with(kind) || total == line.npos) continue;
    const auto value = number_of(line.substr(total + std::string_view("total=").size()));
    if (value) return static_cast<double>(*value) / kMicroseconds;
  }
  return std::nullopt;
}

std::vector<pid_t> ProcReader::processes_beside(pid_t anchor, std::string space) const {
  if (space.empty()) space = link_text(of(anchor) / "ns/pid");
  // Of another user's process, such as the first one in a container that root's daemon has made,
  // the control group can be seen, and that is the container's own or tells nothing.
  const std::string group = space.empty() ? text_in(of(anchor) / "cgroup") : "";
  std::vector<pid_t> found;
  if (space.empty() && (group.empty() || group == text_in(root_ / "proc/self/cgroup")))
    return found;
  for (const pid_t process : numbers_in(root_ / "proc")) {
    const bool is_beside = space.empty() ? text_in(of(process) / "cgroup") == group
                                         : link_text(of(process) / "ns/pid") == space;
    const bool keeps =
        is_beside && process == anchor && keeps_namespace(text_in(of(process) / "comm"));
    if (is_beside && !keeps) found.push_back(process);
  }
  return found;
}

std::vector<ThreadCounters> ProcReader::count_threads(const fs::path& folder) const {
  constexpr double kNanoseconds = 1e9;
  std::vector<ThreadCounters> threads;
  for (const pid_t id : numbers_in(folder / "task")) {
    const fs::path task = folder / "task" / std::to_string(id);
    const auto stat = parse_stat(text_in(task / "stat"));
    if (!stat) continue;
    ThreadCounters thread{id, stat->name, stat->state, stat->cpu_seconds, 0};
    const std::string times = text_in(task / "schedstat");
    const std::vector<std::string_view> words = words_of(times);
    if (words.size() >= 2) {
      thread.cpu_seconds = static_cast<double>(word_number(words, 0)) / kNanoseconds;
      thread.queued_seconds = static_cast<double>(word_number(words, 1)) / kNanoseconds;
    }
    threads.push_back(std::move(thread));
  }
  return threads;
}

std::optional<ProcessCounters> ProcReader::count_process(pid_t id) const {
  const fs::path folder = of(id);
  const auto stat = parse_stat(text_in(folder / "stat"));
  if (!stat || stat->state == 'Z') return std::nullopt;
  ProcessCounters process;
  process.id = id;
  process.started = stat->started;
  process.name = stat->name;
  process.cpu_seconds = stat->cpu_seconds + stat->children_seconds;
  process.resident_bytes = stat->resident_bytes;
  process.major_faults = stat->major_faults;
  process.swapped_bytes =
      counter_after(text_in(folder / "status"), "VmSwap").value_or(0) * kBytesPerKilobyte;
  const std::string io = text_in(folder / "io");
  process.read_bytes = counter_after(io, "read_bytes");
  process.written_bytes = counter_after(io, "write_bytes");
  process.received_chars = counter_after(io, "rchar");
  process.threads = count_threads(folder);
  return process;
}

std::optional<NetworkCounters> ProcReader::count_network(pid_t process) const {
  const std::string text = text_in(of(process) / "net/dev");
  if (text.empty()) return std::nullopt;
  const std::string space = link_text(of(process) / "ns/net");
  if (space.empty()) return std::nullopt;  // nobody can say whose these are
  NetworkCounters found = parse_interfaces(text);
  found.whole_machine = space == link_text(root_ / "proc/self/ns/net");
  return found;
}

HostCounters ProcReader::count_host() const {
  HostCounters host;
  const std::string text = text_in(root_ / "proc/stat");
  std::uint64_t processors = 0;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty() || !words[0].starts_with("cpu")) continue;
    if (words[0] != "cpu") {
      ++processors;
      continue;
    }
    // user, nice, system, (idle, iowait,) irq, softirq, steal
    std::uint64_t busy = 0;
    for (const std::size_t field : {1U, 2U, 3U, 6U, 7U, 8U}) busy += word_number(words, field);
    host.busy_seconds = seconds_of_ticks(busy);
  }
  host.processors = std::max<std::uint64_t>(processors, 1);
  host.io_stall_seconds = parse_pressure(text_in(root_ / "proc/pressure/io"), "full");
  host.memory_stall_seconds = parse_pressure(text_in(root_ / "proc/pressure/memory"), "full");
  return host;
}

Counters ProcReader::count(const std::vector<pid_t>& processes) const {
  Counters counters;
  counters.host = count_host();
  counters.usable_cpus = static_cast<double>(counters.host.processors);
  for (const pid_t id : processes) {
    if (auto process = count_process(id)) counters.processes.push_back(*std::move(process));
  }
  if (counters.processes.empty()) return counters;
  const pid_t first = counters.processes.front().id;
  const std::string status = text_in(of(first) / "status");
  const std::size_t allowed =
      count_of_cpu_list(line_value(status, "Cpus_allowed_list", ':').value_or(""));
  // Bits of processors that are absent may be set.
  if (allowed > 0) {
    counters.usable_cpus = std::min(counters.usable_cpus, static_cast<double>(allowed));
  }
  counters.group = count_group(first);
  if (counters.group.quota_cpus) {
    counters.usable_cpus = std::min(counters.usable_cpus, *counters.group.quota_cpus);
  }
  counters.network = count_network(first);
  return counters;
}

Look ProcReader::look(const std::vector<pid_t>& processes,
                      const std::set<ThreadName>& leading) const {
  constexpr std::size_t kMostThreads = 1000;
  std::size_t seen = 0;
  Look found;
  for (const pid_t process : processes) {
    const fs::path folder = of(process);
    for (const pid_t id : numbers_in(folder / "task")) {
      const bool leads = leading.contains({process, id});
      if (leads || seen++ < kMostThreads) look_at_thread(folder, id, leads, found);
    }
  }
  return found;
}

std::vector<std::string> ProcReader::environment(pid_t process) const {
  std::vector<std::string> variables;
  const std::string text = text_in(of(process) / "environ");
  for (const std::string_view one : split(text, '\0')) {
    if (!one.empty()) variables.emplace_back(one);
  }
  return variables;
}

}  // namespace mlenv::watch
