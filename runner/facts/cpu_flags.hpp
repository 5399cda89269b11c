#pragma once
// Which of a processor's flags facts tell of, by the kernel's names.
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// Those that `CpuFacts::flags` names where the processor has them; sorted.
std::span<const std::string_view> watched_cpu_flags();
/// `x86-64-v3` of a processor with these.
std::string cpu_level_of(const std::vector<std::string_view>& flags);
/// Whether every processor of a level has the flag: `x86-64-v3` has `movbe`.
bool level_has_flag(std::string_view level, std::string_view flag);

}  // namespace mlenv
