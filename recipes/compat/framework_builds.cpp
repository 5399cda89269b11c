#include "recipes/compat/framework_builds.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/resolve/versions.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// `11.3` of `1.12.1+cu113`.
std::string release_of_local(std::string_view local) {
  constexpr std::string_view kMark = "cu";
  if (!local.starts_with(kMark)) return {};
  const std::string_view digits = local.substr(kMark.size());
  if (digits.size() < 2 || digits.size() > 3 || !all_digits(digits)) return {};
  return fmt::format("{}.{}", digits.substr(0, digits.size() - 1), digits.back());
}

}  // namespace

std::optional<std::vector<DeviceCode>> known_device_code(std::string_view package,
                                                         std::string_view version,
                                                         std::string_view cuda) {
  const std::string release = version_prefix(version, 2);
  const auto& builds = cuda_table().builds;
  const auto build = std::find_if(builds.begin(), builds.end(), [&](const CudaTable::Build& one) {
    return one.package == package && one.release == release &&
           (one.cuda.empty() || one.cuda == cuda);
  });
  if (build == builds.end()) return std::nullopt;
  return build->code;
}

std::string cuda_inside(std::string_view package, std::string_view version, std::string_view file) {
  if (package != "torch") return {};
  const std::size_t plus = version.find('+');
  if (plus != std::string_view::npos) return release_of_local(version.substr(plus + 1));
  if (file.find("x86_64") == std::string_view::npos) return {};
  const std::string release = version_prefix(version, 2);
  for (const CudaTable::Build& one : cuda_table().builds) {
    if (one.inside && one.package == package && one.release == release) return one.cuda;
  }
  return {};
}

}  // namespace mlenv
