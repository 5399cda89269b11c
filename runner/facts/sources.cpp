#include "runner/facts/sources.hpp"

#include <sched.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::seconds kFactPatience{5};

std::string shortened(std::string_view text) {
  constexpr std::size_t kMost = 300;
  return printable(trim(text).substr(0, kMost));
}

Text asked(const std::vector<std::string>& argv) {
  const std::string shown = join(argv, " ");
  Command command{Purpose{"host-fact"}};
  command.argv = argv;
  if (argv.at(0).find('/') == std::string::npos) {
    const auto found = find_program(argv[0]);
    if (!found) return unknown<std::string>(fmt::format("`{}` is not installed", argv[0]));
    command.argv[0] = found->string();
  }
  try {
    const Captured answer = run_captured(std::move(command), kFactPatience);
    if (answer.exit.code == 0) return known(answer.out, shown);
    const std::string words = shortened(answer.err.empty() ? answer.out : answer.err);
    return unknown<std::string>(
        fmt::format("`{}` fails with status {}: {}", shown, answer.exit.code, words));
  } catch (const Error& error) {
    return unknown<std::string>(fmt::format("`{}`: {}", shown, error.frames().front()));
  }
}

/// As `nproc` counts. The mask of /proc/self/status also has processors that are not there.
Number affinity() {
  constexpr std::size_t kFirst = 1024;
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  // The kernel refuses a set that is smaller than its own, and does not tell how large that is.
  for (std::size_t count = kFirst; count <= kMost; count *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(count);
    std::vector<unsigned long> bits(bytes / sizeof(unsigned long));
    auto* const set = reinterpret_cast<cpu_set_t*>(bits.data());
    if (::sched_getaffinity(0, bytes, set) == 0) {
      return known<std::uint64_t>(static_cast<std::uint64_t>(CPU_COUNT_S(bytes, set)),
                                  "sched_getaffinity");
    }
    const int error = errno;
    if (error != EINVAL) return unknown<std::uint64_t>("sched_getaffinity: " + errno_text(error));
  }
  return unknown<std::uint64_t>("sched_getaffinity: more processors than can be asked for");
}

}  // namespace

FactSources host_sources(fs::path store, fs::path temporary) {
  FactSources sources;
  sources.store = std::move(store);
  sources.temporary = std::move(temporary);
  sources.ask = asked;
  sources.find = find_program;
  sources.usable_processors = affinity;
  return sources;
}

Text file_text(const FactSources& from, const fs::path& path) {
  try {
    if (const auto text = read_file_if_exists(from.at(path))) {
      return known(std::string(trim(*text)), path.string());
    }
    return unknown<std::string>(path.string() + " is absent");
  } catch (const Error& error) {
    return unknown<std::string>(fmt::format("{}: {}", path.string(), error.frames().back()));
  }
}

Number file_number(const FactSources& from, const fs::path& path) {
  return derived<std::uint64_t>(file_text(from, path), number_of);
}

bool present(const FactSources& from, const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(from.at(path), error));
}

Texts names_in(const FactSources& from, const fs::path& folder) {
  using Names = std::vector<std::string>;
  if (!present(from, folder)) return unknown<Names>(folder.string() + " is absent");
  try {
    Names names;
    for (const fs::path& entry : list_folder(from.at(folder))) {
      names.push_back(entry.filename().string());
    }
    return known(std::move(names), folder.string());
  } catch (const Error& error) {
    return unknown<Names>(fmt::format("{}: {}", folder.string(), error.frames().back()));
  }
}

Text link_target(const FactSources& from, const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(from.at(path), error);
  if (error) return unknown<std::string>(fmt::format("{}: {}", path.string(), error.message()));
  return known(target.string(), path.string());
}

std::optional<std::string> line_value(std::string_view text, std::string_view name,
                                      char separator) {
  for (const std::string_view raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    const std::size_t at = line.find(separator);
    if (at == std::string_view::npos || trim(line.substr(0, at)) != name) continue;
    std::string_view value = trim(line.substr(at + 1));
    if (value.size() > 1 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front()) {
      value = value.substr(1, value.size() - 2);
    }
    return std::string(value);
  }
  return std::nullopt;
}

Text named_value(const Text& text, std::string_view name, char separator) {
  if (!text) return text;
  auto value = line_value(*text, name, separator);
  if (!value) return unknown<std::string>(fmt::format("{} does not say {}", text.source, name));
  return known(*std::move(value), text.source);
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!(text = trim(text)).empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n"));
    words.push_back(word);
    text.remove_prefix(word.size());
  }
  return words;
}

Text os_release(const FactSources& from) {
  const Text usual = file_text(from, "/etc/os-release");
  return usual ? usual : file_text(from, "/usr/lib/os-release");
}

Texts running_programs(const FactSources& from) {
  using Names = std::vector<std::string>;
  // The first PID namespace has a fixed inode (PROC_PID_INIT_INO of the kernel's proc_ns.h).
  const Text space = link_target(from, "/proc/self/ns/pid");
  if (!space) return unknown<Names>(space.source);
  if (*space != "pid:[4026531836]") {
    return unknown<Names>("only processes of this container can be seen");
  }
  if (!present(from, "/proc/1/comm")) {
    return unknown<Names>("/proc is mounted with `hidepid`: other users' processes are not shown");
  }
  Names names;
  for (const std::string& name : names_in(from, "/proc").value.value_or(Names{})) {
    if (!number_of(name)) continue;
    if (const Text comm = file_text(from, "/proc/" + name + "/comm")) names.push_back(*comm);
  }
  std::sort(names.begin(), names.end());
  return known(std::move(names), "/proc/*/comm");
}

}  // namespace mlenv
