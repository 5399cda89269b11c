#include "runner/mpi/site_rank.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/error.hpp"

namespace mlenv::mpi {
namespace {

constexpr std::array<std::string_view, 6> kSitePrefixes = {"OMPI_", "PMIX_",  "PMI_",
                                                           "PRTE_", "SLURM_", "HYDRA_"};
/// Where servers and ranks of a node meet.
constexpr std::array<const char*, 3> kMeetingFolders = {
    "OMPI_MCA_orte_top_session_dir", "PMIX_SERVER_TMPDIR", "PRTE_MCA_prte_top_session_dir"};
constexpr const char* kSharedMemory = "/dev/shm";

bool is_passed(std::string_view name) {
  return std::any_of(kSitePrefixes.begin(), kSitePrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string without_slashes(std::string_view value) {
  while (value.size() > 1 && value.back() == '/') value.remove_suffix(1);
  return std::string(value);
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

std::vector<std::string> folders_of(const Environment& caller) {
  std::vector<std::string> folders;
  for (const char* name : kMeetingFolders) {
    const auto found = caller.find(name);
    if (found == caller.end() || !found->second.starts_with("/")) continue;
    const std::string folder = without_slashes(found->second);
    std::error_code error;
    if (folder == "/" || !fs::is_directory(folder, error)) continue;
    const bool known = std::any_of(folders.begin(), folders.end(),
                                   [&](const auto& one) { return is_within(folder, one); });
    if (!known) folders.push_back(folder);
  }
  return folders;
}

}  // namespace

std::optional<SiteRank> site_rank(const Environment& caller) {
  const bool pmix = caller.contains("PMIX_RANK");
  if (!pmix && !caller.contains("PMI_RANK")) return std::nullopt;
  const std::optional<RankPlace> place = rank_place(caller);
  if (!place) return std::nullopt;
  SiteRank rank;
  rank.place = *place;
  rank.alone = !pmix && caller.contains("PMI_FD");
  if (rank.alone) return rank;
  for (const auto& [name, value] : caller) {
    if (is_passed(name)) rank.variables.push_back(name);
  }
  rank.folders = folders_of(caller);
  return rank;
}

void join_site(const SiteRank& rank, LocalRun& run) {
  if (rank.alone) return;
  if (run.options.network != "host") {
    throw usage_error("usage", "`--network {}` does not go with a rank of MPI", run.options.network)
        .because("its launcher is reached at the host's own addresses")
        .hint("leave `--network` out");
  }
  // Open MPI's own shared memory takes ranks of a node for processes of one namespace, and crashes
  // where each has its own. The launcher's word comes over it.
  std::vector<std::string> env{"OMPI_MCA_btl=^vader,sm"};
  env.insert(env.end(), rank.variables.begin(), rank.variables.end());
  env.push_back(fmt::format("RANK={}", rank.place.rank));
  env.push_back(fmt::format("WORLD_SIZE={}", rank.place.world));
  env.push_back(fmt::format("LOCAL_RANK={}", rank.place.local_rank));
  run.env.insert(run.env.begin(), env.begin(), env.end());
  std::vector<Mount> mounts{Mount{kSharedMemory, kSharedMemory, false}};
  for (const std::string& folder : rank.folders) mounts.push_back(Mount{folder, folder, false});
  run.mounts.insert(run.mounts.begin(), mounts.begin(), mounts.end());
}

std::string site_note(const SiteRank& rank) {
  if (rank.place.rank != 0 || rank.place.world <= 1) return {};
  if (rank.alone) {
    return fmt::format(
        "each of the {} ranks is alone: PMI talks by a descriptor, which no container has; "
        "`srun --mpi=pmix` gives them PMIx",
        rank.place.world);
  }
  return fmt::format(
      "rank 0 of {} by MPI: each container has the launcher's variables, its session folder and "
      "the host's /dev/shm",
      rank.place.world);
}

}  // namespace mlenv::mpi
