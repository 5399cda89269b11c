#pragma once
// Whether an image has what a project's sources import. The sources are read and not run: a script
// may begin to train. Their imports are tried as those of packages are (import_trial.hpp).
#include <vector>

#include "base/progress.hpp"
#include "images/inspect/image_facts.hpp"
#include "images/store.hpp"
#include "recipes/project_imports.hpp"

namespace mlenv {

struct ProjectTrial {
  std::size_t imported = 0;  ///< statements
  /// `package` is the place, `train.py:3`, and there is no version.
  std::vector<FailedImport> failed;
  /// Modules that no package is known to have: a file's that the project gets elsewhere, or a
  /// stranger's.
  std::vector<FailedImport> unknown;
};

/// What fails only for want of a GPU's driver is no failure. At most 200 statements that fail are
/// told apart.
ProjectTrial try_project_imports(const Image& image, Store& store, Progress& progress,
                                 const std::vector<ProjectImport>& imports);

}  // namespace mlenv
