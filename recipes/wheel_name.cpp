#include "recipes/wheel_name.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kEnding = ".whl";
constexpr std::size_t kParts = 5;  // and one more with a build tag

}  // namespace

std::optional<WheelName> parse_wheel_name(std::string_view file) {
  if (!file.ends_with(kEnding)) return std::nullopt;
  file.remove_suffix(kEnding.size());
  const std::vector<std::string_view> parts = split(file, '-');
  const std::size_t last = parts.size();
  if (last != kParts && last != kParts + 1) return std::nullopt;
  return WheelName{.name = parts[0],
                   .version = parts[1],
                   .build = last == kParts ? std::string_view{} : parts[2],
                   .pythons = split(parts[last - 3], '.'),
                   .abis = split(parts[last - 2], '.'),
                   .platforms = split(parts[last - 1], '.')};
}

bool is_for_every_machine(const WheelName& wheel) {
  return std::find(wheel.platforms.begin(), wheel.platforms.end(), "any") != wheel.platforms.end();
}

bool runs_on(const WheelName& wheel, std::string_view machine) {
  return std::any_of(wheel.platforms.begin(), wheel.platforms.end(), [&](std::string_view tag) {
    if (tag == "any") return true;
    if (!tag.ends_with(machine)) return false;
    tag.remove_suffix(machine.size());
    return tag.ends_with('_') && tag.find("linux") != std::string_view::npos;
  });
}

}  // namespace mlenv
