#include "runner/local/option_words.hpp"

#include <arpa/inet.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"
#include "runner/local/machine.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kKiB = 1024;
/// The runtime that starts the job runs within the limit, too.
constexpr std::uint64_t kLeastMemory = 32 * kKiB * kKiB;

Error wrong(std::string_view option, std::string_view text, std::string_view why) {
  return usage_error("usage", "`{} {}` {}", option, text, why);
}

/// `k`, `kb`, `KiB`, …; nullopt: no unit of memory.
std::optional<double> unit(std::string_view text) {
  std::string word = to_lower(text);
  if (word.ends_with("b")) word.pop_back();
  if (word.ends_with("i")) word.pop_back();
  if (word.empty())
    return text.empty() || to_lower(text) == "b" ? std::optional(1.0) : std::nullopt;
  constexpr std::string_view kUnits = "kmgtp";
  const std::size_t index = kUnits.find(word);
  if (word.size() != 1 || index == std::string_view::npos) return std::nullopt;
  return std::pow(static_cast<double>(kKiB), static_cast<double>(index + 1));
}

constexpr std::array kUlimits = {"core",    "cpu",      "data",   "fsize",      "locks",
                                 "memlock", "msgqueue", "nice",   "nofile",     "nproc",
                                 "rss",     "rtprio",   "rttime", "sigpending", "stack"};

/// nullopt inside: unlimited; nullopt outside: no such value.
std::optional<std::optional<std::uint64_t>> ulimit_value(std::string_view text) {
  if (text == "-1" || text == "unlimited") return std::optional<std::uint64_t>{};
  const auto value = number_from<std::uint64_t>(text);
  if (!value) return std::nullopt;
  return std::optional(value);
}

bool is_mode(std::string_view text) {
  constexpr std::size_t kMost = 4;
  return !text.empty() && text.size() <= kMost &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '7'; });
}

/// What an option of a file system in memory may be, beside `size=`.
bool is_memory_option(std::string_view word) {
  static const std::set<std::string_view> known{"ro",     "rw",  "exec",  "noexec",  "suid",
                                                "nosuid", "dev", "nodev", "noatime", "relatime"};
  return known.contains(word) || (word.starts_with("mode=") && is_mode(word.substr(5)));
}

/// Absolute, none of the container's own folders but /tmp and those below /dev and /run.
std::string memory_target(std::string_view option, std::string_view text, std::string_view target) {
  std::string plain = fs::path(target).lexically_normal().string();
  if (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  if (plain.empty() || plain.front() != '/') {
    throw usage_error("bad-mount", "`{} {}` names no absolute folder", option, text);
  }
  const bool is_own = plain == "/" || plain == "/dev" || plain == "/sys" || plain == "/proc" ||
                      plain.starts_with("/proc/") || is_beneath(plain, kMachineTarget);
  if (is_own) {
    throw usage_error("bad-mount", "`{} {}` would cover the container's own `{}`", option, text,
                      plain);
  }
  return plain;
}

void add_memory_option(std::string_view option, std::string_view text, std::string_view word,
                       MemoryFolder& into) {
  if (word.starts_with("size=")) {
    const std::string_view size = word.substr(5);
    const bool is_share =
        size.ends_with("%") && number_from<unsigned>(size.substr(0, size.size() - 1));
    into.options.push_back(is_share ? std::string(word)
                                    : fmt::format("size={}", parse_size("size", size)));
  } else if (is_memory_option(word)) {
    into.options.emplace_back(word);
  } else {
    throw usage_error("bad-mount", "`{} {}`: `{}` is no option of a folder in memory", option, text,
                      word)
        .hint("write `--tmpfs /DIR:size=2g,mode=1777`; others are ro, exec, noexec");
  }
}

/// The usual ones come first: the last word on a thing counts.
constexpr std::array<std::string_view, 3> kUsualTmpfs = {"nosuid", "nodev", "mode=1777"};

MemoryFolder memory_folder(std::string target) {
  return {std::move(target), {kUsualTmpfs.begin(), kUsualTmpfs.end()}};
}

struct MountWords {
  std::string type = "bind";
  std::string source;
  std::string target;
  bool read_only = false;
  std::vector<std::string> memory;  ///< options of a tmpfs
};

bool is_on(std::string_view value) { return value.empty() || value == "true" || value == "1"; }

Error bad_mount_word(std::string_view text, std::string_view word) {
  return usage_error("bad-mount", "`--mount {}`: `{}` is not understood", text, word)
      .hint(
          "write `type=bind,source=DIR,target=/DIR[,readonly]` or "
          "`type=tmpfs,target=/DIR[,tmpfs-size=2g]`");
}

MountWords parse_mount_words(std::string_view text) {
  MountWords result;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (name == "type" && (value == "bind" || value == "tmpfs")) {
      result.type = value;
    } else if ((name == "source" || name == "src") && !value.empty()) {
      result.source = value;
    } else if ((name == "target" || name == "dst" || name == "destination") && !value.empty()) {
      result.target = value;
    } else if (name == "readonly" || name == "ro") {
      result.read_only = is_on(value);
    } else if (name == "tmpfs-size" && !value.empty()) {
      result.memory.push_back("size=" + value);
    } else if (name == "tmpfs-mode" && !value.empty()) {
      result.memory.push_back("mode=" + value);
    } else {
      throw bad_mount_word(text, part);
    }
  }
  return result;
}

struct PortRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

std::optional<PortRange> port_range(std::string_view text) {
  constexpr std::uint64_t kMostPort = 65535;
  const std::size_t dash = text.find('-');
  const auto first = number_from<std::uint64_t>(text.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? first : number_from<std::uint64_t>(text.substr(dash + 1));
  if (!first || !last || *first == 0 || *last > kMostPort || *last < *first) return std::nullopt;
  return PortRange{*first, *last - *first + 1};
}

bool is_ipv4(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

}  // namespace

std::uint64_t parse_size(std::string_view option, std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  const auto value = number_from<double>(text.substr(0, end));
  const auto factor =
      unit(end == std::string_view::npos ? std::string_view{} : trim(text.substr(end)));
  constexpr double kMost = 9e18;
  if (!value || !factor || *value * *factor < 1 || *value * *factor > kMost) {
    throw wrong(option, text, "is no size").hint("write a number with b, k, m, g or t: `512m`");
  }
  return static_cast<std::uint64_t>(*value * *factor);
}

std::uint64_t parse_memory(std::string_view text) {
  const std::uint64_t bytes = parse_size("--memory", text);
  if (bytes < kLeastMemory) {
    throw wrong("--memory", text, "is too little to start a container in").hint("32m is the least");
  }
  return bytes;
}

void parse_memory_swap(std::string_view text, JobLimits& limits) {
  if (!limits.memory_bytes) {
    throw usage_error("usage",
                      "`--memory-swap` is of memory and swap together, and `--memory` is "
                      "not given")
        .hint("add `--memory`");
  }
  if (text == "0") return;
  limits.unlimited_swap = text == "-1";
  if (limits.unlimited_swap) return;
  const std::uint64_t bytes = parse_size("--memory-swap", text);
  if (bytes < *limits.memory_bytes) {
    throw wrong("--memory-swap", text, "is less than `--memory`, which it includes")
        .hint("the same as `--memory` means no swap, `-1` any amount");
  }
  limits.memory_swap_bytes = bytes;
}

double parse_cpus(std::string_view text) {
  const auto value = number_from<double>(text);
  constexpr double kLeast = 0.01;
  if (!value || !std::isfinite(*value) || *value < kLeast) {
    throw wrong("--cpus", text, "is no number of processors")
        .hint("write `--cpus 1.5`; 0.01 is the least");
  }
  return *value;
}

std::string parse_cpuset(std::string_view text) {
  constexpr std::uint64_t kMost = 1U << 13U;  // the kernel's NR_CPUS
  std::set<std::uint64_t> numbers;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = number_from<std::uint64_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : number_from<std::uint64_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMost) {
      throw wrong("--cpuset-cpus", text, "is no list of processors").hint("write `0-3,8`");
    }
    for (std::uint64_t one = *first; one <= *last; ++one) numbers.insert(one);
  }
  std::string result;
  for (auto one = numbers.begin(); one != numbers.end();) {
    const std::uint64_t first = *one;
    std::uint64_t last = first;
    while (++one != numbers.end() && *one == last + 1) last = *one;
    result += (result.empty() ? "" : ",") + std::to_string(first);
    if (last > first) result += "-" + std::to_string(last);
  }
  return result;
}

std::optional<std::uint64_t> parse_pids(std::string_view text) {
  if (text == "-1") return std::nullopt;
  const auto value = number_from<std::uint64_t>(text);
  if (!value || *value == 0) {
    throw wrong("--pids-limit", text, "is no number of processes")
        .hint("write `--pids-limit 4096`, or `-1` for no limit");
  }
  return *value;
}

Ulimit parse_ulimit(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (std::find(kUlimits.begin(), kUlimits.end(), name) == kUlimits.end()) {
    std::string all;
    for (const char* const one : kUlimits) all += (all.empty() ? "" : ", ") + std::string(one);
    throw wrong("--ulimit", text, "names no limit").hint("there are " + all);
  }
  const std::string_view values =
      equals == std::string_view::npos ? std::string_view{} : text.substr(equals + 1);
  const std::size_t colon = values.find(':');
  const auto soft = ulimit_value(values.substr(0, colon));
  const auto hard = colon == std::string_view::npos ? soft : ulimit_value(values.substr(colon + 1));
  if (!soft || !hard) {
    throw wrong("--ulimit", text, "is no limit")
        .hint(fmt::format("write `--ulimit {}=SOFT[:HARD]`, numbers or `unlimited`", name));
  }
  if (*hard && (!*soft || **soft > **hard)) {
    throw wrong("--ulimit", text, "has its soft limit above the hard one");
  }
  return {std::string(name), *soft, *hard};
}

MemoryFolder parse_tmpfs(std::string_view text) {
  const std::size_t colon = text.find(':');
  MemoryFolder folder = memory_folder(memory_target("--tmpfs", text, text.substr(0, colon)));
  if (colon == std::string_view::npos) return folder;
  for (const std::string_view word : split(text.substr(colon + 1), ',')) {
    add_memory_option("--tmpfs", text, word, folder);
  }
  return folder;
}

std::string tmpfs_word(const MemoryFolder& folder) {
  std::string text = folder.target;
  for (std::size_t i = kUsualTmpfs.size(); i < folder.options.size(); ++i) {
    text += (i == kUsualTmpfs.size() ? ":" : ",") + folder.options[i];
  }
  return text;
}

std::variant<Mount, MemoryFolder> parse_mount(std::string_view text) {
  const MountWords words = parse_mount_words(text);
  if (words.target.empty()) {
    throw usage_error("bad-mount", "`--mount {}` names no target", text).hint("add `target=/DIR`");
  }
  if (words.type == "tmpfs") {
    if (!words.source.empty()) throw bad_mount_word(text, "source=" + words.source);
    MemoryFolder folder = memory_folder(memory_target("--mount", text, words.target));
    for (const std::string& word : words.memory) add_memory_option("--mount", text, word, folder);
    if (words.read_only) folder.options.emplace_back("ro");
    return folder;
  }
  if (!words.memory.empty()) throw bad_mount_word(text, "tmpfs-" + words.memory.front());
  if (words.source.empty()) {
    throw usage_error("bad-mount", "`--mount {}` names no source", text).hint("add `source=DIR`");
  }
  return Mount::of(text, words.source, words.target, words.read_only);
}

std::vector<PublishedPort> parse_ports(std::string_view text) {
  const auto mistake = [&](std::string_view why) {
    return wrong("--publish", text, why)
        .hint(
            "write `[IP:]HOST:CONTAINER[/udp]`: `-p 8888:8888` is reached from this machine "
            "alone, `-p 0.0.0.0:8888:8888` from others");
  };
  std::string_view rest = text;
  std::string protocol = "tcp";
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    protocol = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    if (protocol != "tcp" && protocol != "udp") throw mistake("is neither tcp nor udp");
  }
  const std::vector<std::string_view> parts = split(rest, ':');
  if (parts.size() != 2 && parts.size() != 3) throw mistake("is no pair of ports");
  const std::string address = parts.size() == 3 ? std::string(parts[0]) : "127.0.0.1";
  if (!is_ipv4(address)) throw mistake("has no IPv4 address before the ports");
  const auto host = port_range(parts[parts.size() - 2]);
  const auto container = port_range(parts.back());
  if (!host || !container) throw mistake("has a port that is none (1 to 65535)");
  if (host->count != container->count) throw mistake("has ranges of different length");
  std::vector<PublishedPort> ports;
  for (std::uint64_t i = 0; i < host->count; ++i) {
    ports.push_back({address, host->first + i, container->first + i, protocol});
  }
  return ports;
}

std::string parse_hostname(std::string_view text) {
  constexpr std::size_t kMost = 63;
  const bool is_name = !text.empty() && text.size() <= kMost && is_alphanumeric(text.front()) &&
                       is_alphanumeric(text.back()) &&
                       std::all_of(text.begin(), text.end(), [](char c) {
                         return is_alphanumeric(c) || c == '-' || c == '.';
                       });
  if (!is_name) {
    throw wrong("--hostname", text, "is no name of a host")
        .hint("letters, digits, `-` and `.`, at most 63 of them");
  }
  return std::string(text);
}

JobLabel parse_label(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (text.empty() || equals == 0) {
    throw wrong("--label", text, "names no label").hint("write `--label NAME=VALUE`");
  }
  return {std::string(text.substr(0, equals)),
          std::string(equals == std::string_view::npos ? "" : text.substr(equals + 1))};
}

}  // namespace mlenv
