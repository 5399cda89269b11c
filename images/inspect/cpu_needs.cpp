#include <elf.h>
#include <algorithm>
#include <array>
#include <map>

#include <fmt/core.h>

#include "base/text.hpp"
#include "images/inspect/software.hpp"

namespace mlenv {
namespace {

/// Builds on the Python index for x86-64 that start no sooner than the CPU has these.
struct Row {
  std::string_view package;
  std::string_view since;  ///< first version
  std::string_view flags;
};
/// - tensorflow: its installation guide, "Hardware requirements" ("Starting with TensorFlow 1.6,
///   binaries use AVX instructions"), as it was in November 2026.
/// - jaxlib: `cpu_feature_guard.so` of its wheels names AVX and lets nothing be imported without
///   (jaxlib 0.4.30 and 0.10.2, read in November 2026).
constexpr std::array<Row, 3> kRows = {
    {{"tensorflow", "1.6", "avx"}, {"tensorflow-cpu", "1.6", "avx"}, {"jaxlib", "0.4.30", "avx"}}};

/// x86-64 psABI, "Micro-Architecture Levels", by the names in /proc/cpuinfo; each level has those
/// of the levels before it too.
constexpr std::array<std::string_view, 3> kLevels = {"cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
                                                     "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
                                                     "avx512bw avx512cd avx512dq avx512f avx512vl"};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  for (const std::string_view word : split(text, ' ')) list.emplace_back(word);
  return list;
}

std::vector<std::string> flags_of_level(std::uint64_t level) {
  std::vector<std::string> flags;
  for (std::size_t i = 0; i + 2 <= level && i < kLevels.size(); ++i) {
    for (std::string& flag : words(kLevels[i])) flags.push_back(std::move(flag));
  }
  std::sort(flags.begin(), flags.end());
  return flags;
}

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
    for (const Row& row : kRows) {
      if (one.name != row.package || is_older_version(one.version, row.since)) continue;
      needs.push_back({fmt::format("{} {}", one.name, one.version), words(row.flags)});
    }
  }
  std::sort(needs.begin(), needs.end(),
            [](const CpuNeed& a, const CpuNeed& b) { return a.who < b.who; });
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  return needs;
}

}  // namespace mlenv
