#include "recipes/compat/cuda_releases.hpp"

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "base/log.hpp"
#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

std::function<fs::path()>& data_folder() {
  static std::function<fs::path()> folder;
  return folder;
}

/// All that is answered from; made once, and never changed.
struct InUse {
  CudaTable table;
  CudaDataOrigin origin;
  std::vector<CudaRelease> releases;  ///< views into `table`
};

/// Takes what `mlenv data update` found, where it may be taken.
void take_update(InUse& into) {
  if (!data_folder()) return;
  fs::path path;
  try {
    path = data_folder()() / kCudaDataFile;
    const std::optional<std::string> text = read_file_if_exists(path);
    if (!text) return;
    CudaTable newer = parse_cuda_table(*text, path);
    into.origin.passed_over = fault_of_update(into.table, newer);
    if (into.origin.passed_over.empty()) {
      into.origin.file = path;
      into.table.date = std::move(newer.date);
      into.table.releases = std::move(newer.releases);
      into.table.sources.merge(newer.sources);
    }
  } catch (const Error& error) {  // there is always the built-in data
    into.origin.passed_over = error.frames().front();
  }
  if (!into.origin.passed_over.empty()) {
    log::debug("`{}` is passed over: {}", path.string(), into.origin.passed_over);
  }
}

const InUse& in_use() {
  static const std::unique_ptr<const InUse> made = [] {
    auto all = std::make_unique<InUse>();
    all->table = parse_cuda_table(built_in_cuda_data(), "recipes/compat/cuda.toml");
    take_update(*all);
    for (const CudaTable::Release& one : all->table.releases) {
      all->releases.push_back({one.release, one.driver, {one.updates.begin(), one.updates.end()}});
    }
    return all;
  }();
  return *made;
}

/// Whether machine code of an older minor of the same major, which this release can make, runs
/// there: sm_86 on an 8.9.
bool has_elder(std::string_view release, const DeviceCode& gpu) {
  const auto& rows = in_use().table.architectures;
  return std::any_of(rows.begin(), rows.end(), [&](const CudaTable::Architecture& row) {
    return row.code.major == gpu.major && row.code.minor <= gpu.minor &&
           !is_older(release, row.first);
  });
}

}  // namespace

void look_for_cuda_data(std::function<fs::path()> folder) { data_folder() = std::move(folder); }

const CudaDataOrigin& cuda_data_origin() { return in_use().origin; }

const CudaTable& cuda_table() { return in_use().table; }

std::span<const CudaRelease> cuda_releases() { return in_use().releases; }

std::string_view cuda_driver(std::string_view release) {
  for (const CudaRelease& one : cuda_releases()) {
    if (one.release == release) return one.driver;
  }
  return {};
}

bool has_minor_compatibility(std::string_view release) { return !is_older(release, "11"); }

std::string_view cuda_driver_floor(std::string_view release) {
  if (!has_minor_compatibility(release)) return cuda_driver(release);
  const std::string major = major_of(release);
  for (const CudaTable::Floor& floor : in_use().table.floors) {
    if (floor.major == major) return floor.driver;
  }
  return {};
}

std::optional<Coverage> most_coverage(std::string_view release, const DeviceCode& gpu) {
  const auto& rows = in_use().table.architectures;
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const CudaTable::Architecture& one) {
    return one.code.major == gpu.major && one.code.minor == gpu.minor;
  });
  if (row == rows.end() || cuda_driver(release).empty()) return std::nullopt;
  if (!row->last.empty() && is_older(row->last, release)) return Coverage::none;
  return has_elder(release, gpu) ? Coverage::complete : Coverage::by_ptx;
}

bool wheels_hold_nvcc(std::string_view release) { return !is_older(release, "13.0"); }

}  // namespace mlenv
