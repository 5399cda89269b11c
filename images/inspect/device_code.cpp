#include "images/inspect/device_code.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "base/text.hpp"

namespace mlenv {

std::string DeviceCode::name() const {
  return fmt::format("{}_{}{}{}", ptx ? "compute" : "sm", major, minor,
                     variant == 0 ? std::string{} : std::string(1, variant));
}

std::optional<DeviceCode> parse_device_code(std::string_view text) {
  DeviceCode code;
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (!text.starts_with(prefix)) continue;
    code.ptx = prefix != "sm_";
    text.remove_prefix(prefix.size());
    if (text.ends_with('a') || text.ends_with('f')) {
      code.variant = text.back();
      text.remove_suffix(1);
    }
    const bool is_number = std::all_of(text.begin(), text.end(), is_digit);
    if (!is_number || text.size() < 2 || text.size() > 3) return std::nullopt;
    code.minor = text.back() - '0';
    text.remove_suffix(1);
    for (const char c : text) code.major = code.major * 10 + (c - '0');
    return code;
  }
  return std::nullopt;
}

}  // namespace mlenv
