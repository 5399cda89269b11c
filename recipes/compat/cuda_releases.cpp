#include "recipes/compat/cuda_releases.hpp"

#include <algorithm>
#include <array>

#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

/// 12.7 was never released.
constexpr std::array<CudaRelease, 24> kReleases = {
    {{"13.5", "620.70.06"}, {"13.4", "615.71.09"}, {"13.3", "610.43.02"}, {"13.2", "595.45.04"},
     {"13.1", "590.44.01"}, {"13.0", "580.65.06"}, {"12.9", "575.51.03"}, {"12.8", "570.26"},
     {"12.6", "560.28.03"}, {"12.5", "555.42.02"}, {"12.4", "550.54.14"}, {"12.3", "545.23.06"},
     {"12.2", "535.54.03"}, {"12.1", "530.30.02"}, {"12.0", "525.60.13"}, {"11.8", "520.61.05"},
     {"11.7", "515.43.04"}, {"11.6", "510.39.01"}, {"11.5", "495.29.05"}, {"11.4", "470.42.01"},
     {"11.3", "465.19.01"}, {"11.2", "460.27.03"}, {"11.1", "455.23"},    {"11.0", "450.51.05"}}};

struct Floor {
  std::string_view major;
  std::string_view driver;
};
constexpr std::array<Floor, 3> kFloors = {
    {{"11", "450.80.02"}, {"12", "525.60.13"}, {"13", "580"}}};

/// First and last toolkit that compile for an architecture (release notes, "Deprecated and Dropped
/// Features" and "New Features" of each toolkit). An empty `last` is still supported.
struct Support {
  int major;
  int minor;
  std::string_view first;
  std::string_view last;
};
constexpr std::array<Support, 23> kSupport = {
    {{3, 5, "", "11.8"},  {3, 7, "", "11.8"},  {5, 0, "", "12.9"},  {5, 2, "", "12.9"},
     {5, 3, "", "12.9"},  {6, 0, "", "12.9"},  {6, 1, "", "12.9"},  {6, 2, "", "12.9"},
     {7, 0, "", "12.9"},  {7, 2, "", "12.9"},  {7, 5, "10.0", ""},  {8, 0, "11.0", ""},
     {8, 6, "11.1", ""},  {8, 7, "11.4", ""},  {8, 8, "13.0", ""},  {8, 9, "11.8", ""},
     {9, 0, "11.8", ""},  {10, 0, "12.8", ""}, {10, 3, "12.9", ""}, {10, 7, "13.4", ""},
     {11, 0, "13.0", ""}, {12, 0, "12.8", ""}, {12, 1, "12.9", ""}}};

bool is_older(std::string_view a, std::string_view b) { return std::is_lt(compare_versions(a, b)); }

/// Whether machine code of an older minor of the same major, which this release can make, runs
/// there: sm_86 on an 8.9.
bool has_elder(std::string_view release, const DeviceCode& gpu) {
  return std::any_of(kSupport.begin(), kSupport.end(), [&](const Support& row) {
    return row.major == gpu.major && row.minor <= gpu.minor && !is_older(release, row.first);
  });
}

}  // namespace

std::span<const CudaRelease> cuda_releases() { return kReleases; }

std::string_view cuda_driver(std::string_view release) {
  const auto found = std::find_if(kReleases.begin(), kReleases.end(),
                                  [&](const CudaRelease& row) { return row.release == release; });
  return found == kReleases.end() ? std::string_view{} : found->driver;
}

std::string_view cuda_driver_floor(std::string_view major) {
  for (const Floor& floor : kFloors) {
    if (floor.major == major) return floor.driver;
  }
  return {};
}

std::optional<Coverage> most_coverage(std::string_view release, const DeviceCode& gpu) {
  const auto row = std::find_if(kSupport.begin(), kSupport.end(), [&](const Support& one) {
    return one.major == gpu.major && one.minor == gpu.minor;
  });
  if (row == kSupport.end() || cuda_driver(release).empty()) return std::nullopt;
  if (!row->last.empty() && is_older(row->last, release)) return Coverage::none;
  return has_elder(release, gpu) ? Coverage::complete : Coverage::by_ptx;
}

bool wheels_hold_nvcc(std::string_view release) { return !is_older(release, "13.0"); }

}  // namespace mlenv
