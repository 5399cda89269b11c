#pragma once
// What an image has installed, and a run's record with that.
#include "cli/ui.hpp"
#include "recipes/environment.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::cli {

/// Throws what reading its layers throws, with `name` in front.
Environment installed_in(Ui& ui, const Image& image, std::string_view name);

/// Reads into the record what the run's image has, where the record does not have it and the store
/// has the image; else the reason, which is empty where it is there.
std::string add_environment(Ui& ui, RunRecord& run);

}  // namespace mlenv::cli
