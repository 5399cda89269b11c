#pragma once
// Wheel file names (binary distribution format, "File name convention").
#include <optional>
#include <string_view>
#include <vector>

namespace mlenv {

/// Views into the file name.
struct WheelName {
  std::string_view name;
  std::string_view version;
  std::string_view build;  ///< empty: none
  std::vector<std::string_view> pythons;
  std::vector<std::string_view> abis;
  std::vector<std::string_view> platforms;
};

/// nullopt when it is no `NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl`.
std::optional<WheelName> parse_wheel_name(std::string_view file);

/// Whether one of the platform tags is `any`.
bool is_for_every_machine(const WheelName& wheel);

/// Whether one of the platform tags is `any` or Linux on `machine` (`x86_64`, `aarch64`).
bool runs_on(const WheelName& wheel, std::string_view machine);

}  // namespace mlenv
