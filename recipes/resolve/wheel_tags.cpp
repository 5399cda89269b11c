#include "recipes/resolve/wheel_tags.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/core.h>

#include "recipes/wheel_name.hpp"

namespace mlenv {
namespace {

int last_number(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (dot != std::string_view::npos) text.remove_prefix(dot + 1);
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::clamp(value, 0, 1000);
}

/// manylinux tags from the newest glibc downwards, each followed by its old name (PEP 600).
std::vector<std::string> platform_tags(std::string_view machine, int glibc_minor) {
  const bool old_names = machine == "x86_64";
  const int oldest = old_names ? 5 : 17;
  std::vector<std::string> tags;
  for (int minor = glibc_minor; minor >= oldest; --minor) {
    tags.push_back(fmt::format("manylinux_2_{}_{}", minor, machine));
    if (minor == 17) tags.push_back(fmt::format("manylinux2014_{}", machine));
    if (old_names && minor == 12) tags.push_back(fmt::format("manylinux2010_{}", machine));
    if (old_names && minor == 5) tags.push_back(fmt::format("manylinux1_{}", machine));
  }
  tags.push_back(fmt::format("linux_{}", machine));
  return tags;
}

/// The build tag sorts by its leading digits, then by the rest; no tag sorts first.
std::pair<int, std::string_view> build_of(std::string_view file) {
  const std::optional<WheelName> wheel = parse_wheel_name(file);
  if (!wheel || wheel->build.empty()) return {-1, {}};
  int number = 0;
  const auto* end = wheel->build.data() + wheel->build.size();
  const auto read = std::from_chars(wheel->build.data(), end, number);
  return {number, std::string_view(read.ptr, static_cast<std::size_t>(end - read.ptr))};
}

}  // namespace

std::string_view machine_name(std::string_view architecture) {
  return architecture == "arm64" ? "aarch64" : "x86_64";
}

WheelTags::WheelTags(std::string_view python_minor, std::string_view glibc,
                     std::string_view architecture)
    : platforms_(platform_tags(machine_name(architecture), last_number(glibc))) {
  const int minor = last_number(python_minor);
  const std::string own = fmt::format("cp3{}", minor);
  add(own, own);
  add(own, "abi3");
  add(own, "none");
  for (int older = minor - 1; older >= 2; --older) add(fmt::format("cp3{}", older), "abi3");
  add(fmt::format("py3{}", minor), "none");
  add("py3", "none");
  for (int older = minor - 1; older >= 0; --older) add(fmt::format("py3{}", older), "none");
  platforms_ = {"any"};
  add(own, "none");
  add(fmt::format("py3{}", minor), "none");
  add("py3", "none");
  for (int older = minor - 1; older >= 0; --older) add(fmt::format("py3{}", older), "none");
}

void WheelTags::add(const std::string& python, const std::string& abi) {
  for (const std::string& platform : platforms_) {
    ranks_.emplace(fmt::format("{}-{}-{}", python, abi, platform), static_cast<int>(ranks_.size()));
  }
}

std::optional<int> WheelTags::rank(std::string_view file) const {
  const std::optional<WheelName> wheel = parse_wheel_name(file);
  if (!wheel) return std::nullopt;
  std::optional<int> best;
  for (const std::string_view python : wheel->pythons) {
    for (const std::string_view abi : wheel->abis) {
      for (const std::string_view platform : wheel->platforms) {
        const auto found = ranks_.find(fmt::format("{}-{}-{}", python, abi, platform));
        if (found != ranks_.end()) best = std::min(best.value_or(found->second), found->second);
      }
    }
  }
  return best;
}

std::optional<std::size_t> WheelTags::best(const std::vector<std::string>& files) const {
  std::optional<std::size_t> best;
  std::optional<int> best_rank;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::optional<int> found = rank(files[i]);
    if (!found) continue;
    const bool better = !best || *found < *best_rank ||
                        (*found == *best_rank && build_of(files[i]) > build_of(files[*best]));
    if (!better) continue;
    best = i;
    best_rank = found;
  }
  return best;
}

}  // namespace mlenv
