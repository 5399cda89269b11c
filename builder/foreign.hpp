#pragma once
// Images for machines of another kind than this one: what of them can be made without running any
// of their programs, and what is said of the rest.
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "builder/plan.hpp"
#include "builder/run/run_step.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

/// Whether this machine runs programs of an image for `platform`.
bool runs_here(const std::string& platform);

/// Layers of step `index`, where this machine cannot make them and an earlier build of the same
/// lock and files recorded them, as far as they can be had (`run.find`).
std::optional<std::vector<Layer>> recorded_foreign_layers(const Lock& lock, const Plan& plan,
                                                          std::size_t index, const RunOptions& run);

/// Throws `foreign-platform` where one of the `missing` steps runs a program of the image, which
/// this machine cannot. To be called before anything is fetched for them.
void require_no_programs(const Lock& lock, const Plan& plan,
                         const std::vector<std::size_t>& missing, const RunOptions& run,
                         const Store& store);
/// The same for a `run` step that is about to be executed.
void require_runs_here(const Lock& lock, const RunStep& step);

/// Which of a recorded build's blobs, lowest first, are which step's. Empty where they are another
/// number than the plan has layers.
std::vector<std::vector<Digest>> blobs_by_step(const Plan& plan, const Lock& lock,
                                               const std::vector<Digest>& blobs);

}  // namespace mlenv
