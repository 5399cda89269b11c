#include "recipes/compat/framework_builds.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

struct Build {
  std::string_view package;
  std::string_view release;  ///< first two numbers of the version
  std::string_view cuda;
  std::string_view machine_code;  ///< separated by blanks
  std::string_view read;          ///< the versions whose wheels were read, in November 2026
};

constexpr std::string_view kFrom50 = "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90";
constexpr std::string_view kFrom70 = "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120";
constexpr std::string_view kFrom75 = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120";

constexpr std::array<Build, 16> kBuilds = {
    {{"torch", "2.15", "13.2", kFrom75, "2.15.0"},
     {"torch", "2.14", "13.0", kFrom75, "2.14.0, 2.14.1"},
     {"torch", "2.13", "13.0", kFrom75, "2.13.0"},
     {"torch", "2.12", "13.0", kFrom75, "2.12.0"},
     {"torch", "2.11", "13.0", kFrom75, "2.11.0"},
     {"torch", "2.10", "12.8", kFrom70, "2.10.0"},
     {"torch", "2.9", "12.8", kFrom70, "2.9.0, 2.9.1"},
     {"torch", "2.8", "12.8", kFrom70, "2.8.0"},
     {"torch", "2.7", "12.6", kFrom50, "2.7.0, 2.7.1"},
     {"torch", "2.6", "12.4", kFrom50, "2.6.0"},
     {"torch", "2.5", "12.4", kFrom50, "2.5.1"},
     {"torch", "2.4", "12.1", kFrom50, "2.4.1"},
     {"torch", "2.3", "12.1", kFrom50, "2.3.1"},
     {"torch", "2.2", "12.1", kFrom50, "2.2.2"},
     {"torch", "2.1", "12.1", kFrom50, "2.1.2"},
     {"torch", "2.0", "11.7", "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86", "2.0.1"}}};

}  // namespace

std::optional<std::vector<DeviceCode>> known_device_code(std::string_view package,
                                                         std::string_view version,
                                                         std::string_view cuda) {
  const std::string release = version_prefix(version, 2);
  const auto* build = std::find_if(kBuilds.begin(), kBuilds.end(), [&](const Build& one) {
    return one.package == package && one.release == release && one.cuda == cuda;
  });
  if (build == kBuilds.end()) return std::nullopt;
  std::vector<DeviceCode> codes;
  for (const std::string_view word : split(build->machine_code, ' ')) {
    if (const auto code = parse_device_code(word)) codes.push_back(*code);
  }
  return codes;
}

}  // namespace mlenv
