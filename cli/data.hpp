#pragma once
// A recipe's data sets on this machine.
#include <vector>

#include "cli/recipe_lock.hpp"
#include "cli/ui.hpp"
#include "recipes/recipe.hpp"
#include "recipes/storage_names.hpp"
#include "runner/job/data_set.hpp"
#include "runner/local/run.hpp"

namespace mlenv::cli {

/// Holds each data set that is here against its digest; one that is elsewhere is told of. What was
/// read once is not read again until names, sizes or times change. Throws the recipe's error, with
/// the digest to write, where it has none, and `data-differs` (exit 3).
std::vector<VerifiedData> verify_data(Ui& ui, const Recipe& recipe);

/// As `-v` says them. What names storage need not be here: it may be of the nodes of a job.
std::vector<Mount> mounts_of(const std::vector<std::string>& texts, const StorageNames& storage);
/// Throws `no-storage` for one of `mounts` that names storage and is not here.
void require_storage(const std::vector<Mount>& mounts);
/// Throws `no-data` for a set of the recipe in that file that is not here.
void require_data(const fs::path& recipe);
/// Puts them in front of the run's mounts, read-only, each from where it was verified. Throws the
/// same.
void add_data(LocalRun& run, const std::vector<VerifiedData>& data);
/// The same for a job, whose nodes look for it themselves: it need not be here. What they may have
/// to be sent is read here first, once.
std::vector<job::DataSet> data_sets_of(Ui& ui, const fs::path& recipe);

}  // namespace mlenv::cli
