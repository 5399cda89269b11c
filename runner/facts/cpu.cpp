#include <algorithm>
#include <array>
#include <set>

#include "base/text.hpp"
#include "runner/facts/cpu_flags.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

void flag_facts(const Text& info, CpuFacts& facts) {
  Text line = named_value(info, "flags", ':');
  const bool is_x86 = line.value.has_value();
  if (!is_x86) line = named_value(info, "Features", ':');
  facts.flags = derived<std::vector<std::string>>(line, [](const std::string& text) {
    const std::vector<std::string_view> words = words_of(text);
    std::vector<std::string> found;
    for (const std::string_view flag : watched_cpu_flags()) {
      if (std::find(words.begin(), words.end(), flag) != words.end()) found.emplace_back(flag);
    }
    return std::optional(found);
  });
  facts.level = !info    ? unknown<std::string>(info.source)
                : is_x86 ? known(cpu_level_of(words_of(*line)), line.source)
                         : unknown<std::string>("levels are x86-64's alone");
}

/// Processors are paragraphs of /proc/cpuinfo; those of one core have its id and the socket's.
void count_processors(const FactSources& from, const Text& info, CpuFacts& facts) {
  std::uint64_t processors = 0;
  std::set<std::string> sockets;
  std::set<std::string> cores;
  std::string socket;
  const std::string text = info.value.value_or("");
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view name = trim(line.substr(0, colon));
    const std::string value(trim(line.substr(colon + 1)));
    if (name == "processor" && number_of(value)) ++processors;
    if (name == "physical id") sockets.insert(socket = value);
    if (name == "core id") cores.insert(socket + "/" + value);
  }
  const auto counted = [&](std::uint64_t count) {
    if (!info) return unknown<std::uint64_t>(info.source);
    return count > 0 ? known(count, info.source)
                     : unknown<std::uint64_t>(info.source + " does not say");
  };
  facts.processors = counted(processors);
  facts.sockets = counted(sockets.size());
  facts.cores = counted(cores.size());
  facts.usable =
      from.usable_processors ? from.usable_processors() : unknown<std::uint64_t>("not recorded");
}

constexpr std::uint64_t kMillicores = 1000;

/// `max 100000`, `150000 100000` of cpu.max; a quota of -1 in v1.
std::optional<Limit> quota(std::string_view allowed, std::string_view period) {
  if (allowed == "max" || allowed == "-1") return Limit{};
  const auto most = number_of(allowed);
  const auto each = number_of(period);
  if (!most || !each || *each == 0) return std::nullopt;
  return Limit{*most * kMillicores / *each};
}

Fact<Limit> cpu_limit(const FactSources& from) {
  return least_limit(from, "cpu", [&](const fs::path& folder, bool unified) {
    const fs::path file = folder / (unified ? "cpu.max" : "cpu.cfs_quota_us");
    if (!present(from, file)) return known(Limit{}, file.string());
    const Text text = file_text(from, file);
    if (!text) return unknown<Limit>(text.source);
    const Text period = unified ? Text{} : file_text(from, folder / "cpu.cfs_period_us");
    std::vector<std::string_view> words = words_of(*text);
    if (!unified) words.push_back(period.value ? std::string_view(*period.value) : "");
    const auto limit = words.size() == 2 ? quota(words[0], words[1]) : std::nullopt;
    return limit ? known(*limit, text.source) : unknown<Limit>(text.source + ": not understood");
  });
}

}  // namespace

CpuFacts probe_cpu(const FactSources& from) {
  CpuFacts facts;
  const Text info = file_text(from, "/proc/cpuinfo");
  facts.model = named_value(info, "model name", ':');
  flag_facts(info, facts);
  count_processors(from, info, facts);
  facts.limit_millicpus = cpu_limit(from);
  return facts;
}

}  // namespace mlenv
