#include "recipes/compat/framework_builds.hpp"

#include <algorithm>

#include "recipes/compat/cuda_releases.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {

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

}  // namespace mlenv
