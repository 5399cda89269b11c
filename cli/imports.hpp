#pragma once
// What `mlenv build --imports` and `mlenv init --try` say of imports that were tried.
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/error.hpp"
#include "builder/imports/import_trial.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {

/// Tries them on a finished image of this machine's platform; what failed is kept with the image,
/// for `check` and `run`. One line says how many came in, another each that wants a GPU's driver
/// alone.
ImportTrial try_and_keep_imports(Ui& ui, const Image& image, const Lock& lock);

/// `` `import cv2` (opencv-python 4.11.0.86): ImportError: libGL.so.1: … ``
std::string shown_failure(const FailedImport& one);

/// `imports-failed` (no): each that failed, why, and the lines of the recipe that mend them. For a
/// trial with failures.
Error failed_imports_error(const ImportTrial& trial, const std::string& recipe);

/// For the answer of `build --json`.
nlohmann::json imports_as_json(const ImportTrial& trial);

}  // namespace mlenv::cli
