#include <elf.h>
#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "images/inspect/cpu_table.hpp"
#include "images/inspect/software.hpp"

namespace mlenv {
namespace {

/// Where Debian's packages have theirs.
constexpr std::string_view kDistributions = "usr/lib/python3/dist-packages";

/// Files of which the dynamic linker refuses to load each on a lesser CPU, but those in folders
/// that it looks into only where the CPU is no lesser one. The first file of each level.
std::map<std::uint64_t, std::string> files_by_level(const ImageTree& tree) {
  std::map<std::uint64_t, std::string> first;
  for (const auto& [path, node] : tree.nodes()) {
    if (node.elf == nullptr || node.elf->x86_level < 2) continue;
    if (path.find("glibc-hwcaps/") != std::string::npos) continue;
    first.emplace(node.elf->x86_level, path);
  }
  return first;
}

}  // namespace

std::vector<CpuNeed> cpu_needs_of(const ImageTree& tree, std::uint64_t machine,
                                  const std::vector<PythonPackage>& packages) {
  std::vector<CpuNeed> needs;
  if (machine != EM_X86_64) return needs;
  for (const auto& [level, path] : files_by_level(tree)) {
    needs.push_back({"/" + path, flags_of_level(level)});
  }
  for (const PythonPackage& one : packages) {
    if (one.site == kDistributions) continue;  // built by others, for any processor
    std::vector<std::string> flags = known_cpu_flags(one.name, one.version);
    if (flags.empty()) continue;
    needs.push_back({fmt::format("{} {}", one.name, one.version), std::move(flags)});
  }
  std::sort(needs.begin(), needs.end(),
            [](const CpuNeed& a, const CpuNeed& b) { return a.who < b.who; });
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  return needs;
}

}  // namespace mlenv
