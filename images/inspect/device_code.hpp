#pragma once
// The name of what a GPU can run: one piece of device code's architecture.
#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace mlenv {

/// What one piece of device code was compiled for: machine code (`sm_90`, `sm_90a`, `sm_100f`) or
/// PTX (`compute_90`), which a driver compiles when it is loaded.
struct DeviceCode {
  bool ptx = false;
  int major = 0;
  int minor = 0;
  char variant = 0;  ///< `a`: that architecture alone; `f`: its family; 0: later minors too
  friend auto operator<=>(const DeviceCode&, const DeviceCode&) = default;

  std::string name() const;
};

/// nullopt for other text.
std::optional<DeviceCode> parse_device_code(std::string_view text);

}  // namespace mlenv
