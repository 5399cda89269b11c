#include <algorithm>

#include "base/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kBytesPerKib = 1024;

/// `65808988 kB`
std::optional<std::uint64_t> parsed_bytes(std::string_view text) {
  const auto words = words_of(text);
  if (words.size() != 2 || words[1] != "kB") return std::nullopt;
  const auto number = number_of(words[0]);
  return number ? std::optional(*number * kBytesPerKib) : std::nullopt;
}

Fact<std::vector<NumaNode>> numa(const FactSources& from) {
  const fs::path folder = "/sys/devices/system/node";
  return derived<std::vector<NumaNode>>(
      names_in(from, folder), [&](const std::vector<std::string>& names) {
        std::vector<NumaNode> nodes;
        for (const std::string& name : names) {
          if (!name.starts_with("node")) continue;
          const auto id = number_of(std::string_view(name).substr(4));
          if (!id) continue;
          NumaNode node{*id, file_text(from, folder / name / "cpulist"), {}};
          node.memory_bytes =
              derived<std::uint64_t>(named_value(file_text(from, folder / name / "meminfo"),
                                                 "Node " + std::to_string(*id) + " MemTotal", ':'),
                                     parsed_bytes);
          nodes.push_back(std::move(node));
        }
        std::sort(nodes.begin(), nodes.end(),
                  [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
        return std::optional(nodes);
      });
}

/// v1 writes the largest number of whole pages where nothing is limited.
constexpr std::uint64_t kUnlimitedBytes = 0x7ffffffffffff000 - 0x10000;

Fact<Limit> memory_limit(const FactSources& from) {
  return least_limit(from, "memory", [&](const fs::path& folder, bool unified) {
    const fs::path file = folder / (unified ? "memory.max" : "memory.limit_in_bytes");
    if (!present(from, file)) return known(Limit{}, file.string());
    return derived<Limit>(file_text(from, file), [](const std::string& text) {
      const auto most = number_of(text);
      if (text == "max" || (most && *most >= kUnlimitedBytes)) return std::optional(Limit{});
      return most ? std::optional(Limit{most}) : std::nullopt;
    });
  });
}

}  // namespace

MemoryFacts probe_memory(const FactSources& from) {
  const Text info = file_text(from, "/proc/meminfo");
  const auto line = [&](std::string_view name) {
    return derived<std::uint64_t>(named_value(info, name, ':'), parsed_bytes);
  };
  MemoryFacts facts;
  facts.total_bytes = line("MemTotal");
  facts.available_bytes = line("MemAvailable");
  facts.swap_bytes = line("SwapTotal");
  facts.limit_bytes = memory_limit(from);
  facts.numa = numa(from);
  return facts;
}

}  // namespace mlenv
