#pragma once
// A recipe's data sets on this machine.
#include <vector>

#include "cli/ui.hpp"
#include "recipes/recipe.hpp"
#include "recipes/storage_names.hpp"
#include "runner/job/data_set.hpp"
#include "runner/local/run.hpp"

namespace mlenv::cli {

/// Holds each data set that is here against its digest; one that is elsewhere is told of. What was
/// read once is not read again until names, sizes or times change. Throws the recipe's error, with
/// the digest to write, where it has none, and `data-differs` (exit 3).
void verify_data(Ui& ui, const Recipe& recipe);

/// As `-v` says them. What names storage need not be here: it may be of the nodes of a job.
std::vector<Mount> mounts_of(const std::vector<std::string>& texts, const StorageNames& storage);
/// Throws `no-storage` for one of `mounts` that names storage and is not here.
void require_storage(const std::vector<Mount>& mounts);
/// Puts the data of the recipe in that file in front, read-only, each set at its place. Throws
/// `no-data` for one that is not here.
void add_data(std::vector<Mount>& mounts, const fs::path& recipe);
/// The same for a job, whose nodes look for it themselves: it need not be here. What they may have
/// to be sent is read here first, once.
std::vector<job::DataSet> data_sets_of(Ui& ui, const fs::path& recipe);

}  // namespace mlenv::cli
