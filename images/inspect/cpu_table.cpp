#include "images/inspect/cpu_table.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "images/inspect/software.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kTensorflow =
    "TensorFlow, installation guide, hardware requirements: binaries use AVX since 1.6";
constexpr std::array<CpuRow, 5> kRows = {{
    {"tensorflow", "1.6", true, "avx", kTensorflow, "2026-11"},
    {"tensorflow-cpu", "1.6", true, "avx", kTensorflow, "2026-11"},
    {"jaxlib", "0.4.30", false, "avx",
     "cpu_feature_guard.so of wheels 0.4.30 and 0.10.2: nothing is imported without what it names",
     "2026-11"},
    {"numpy", "2.4", false, "x86-64-v2",
     "_multiarray_umath.so of wheels 2.4.0 and 2.4.6, baseline(X86_V2), without which it raises an "
     "error when imported; that of 2.3.5 has SSE3",
     "2026-11"},
    {"polars-runtime-32", "2.1", false,
     "abm avx avx2 bmi1 bmi2 cx16 fma movbe pclmulqdq popcnt sse4_1 sse4_2 ssse3",
     "build_feature_flags.py of wheel 2.1.0; polars warns of a crash without them", "2026-11"},
}};

constexpr std::string_view kLevel = "x86-64-v";
constexpr std::array<std::string_view, 3> kLevelFlags = {
    "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3", "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "avx512bw avx512cd avx512dq avx512f avx512vl"};

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  for (const std::string_view word : split(text, ' ')) list.emplace_back(word);
  return list;
}

bool row_counts(const CpuRow& row, std::string_view version) {
  return version.empty() ? row.always : !is_older_version(version, row.since);
}

}  // namespace

std::span<const CpuRow> cpu_rows() { return kRows; }

std::vector<std::string> known_cpu_flags(std::string_view package, std::string_view version) {
  for (const CpuRow& row : kRows) {
    if (row.package != package || !row_counts(row, version)) continue;
    if (!row.flags.starts_with(kLevel)) return words(row.flags);
    return flags_of_level(static_cast<std::uint64_t>(row.flags.back() - '0'));
  }
  return {};
}

std::vector<std::string> flags_of_level(std::uint64_t level) {
  std::vector<std::string> flags;
  for (std::size_t i = 0; i + 2 <= level && i < kLevelFlags.size(); ++i) {
    for (std::string& flag : words(kLevelFlags[i])) flags.push_back(std::move(flag));
  }
  std::sort(flags.begin(), flags.end());
  return flags;
}

}  // namespace mlenv
