#pragma once
// `mlenv build --imports`: each top-level package of an image's Python is imported once, in the
// sandbox on top of the finished image, without network. What an `import` needs that no file's
// `NEEDED` names (ctypes, dlopen, modules that nobody declared) shows then, not on a training node.
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "images/inspect/image_facts.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct ImportTrial {
  std::size_t imported = 0;          ///< top-level packages that came in
  std::vector<FailedImport> failed;  ///< packages that the recipe names first
  /// Failed for want of a GPU's driver alone, which a build never has: `torch_tensorrt`.
  std::vector<FailedImport> without_gpu;
};

/// `image` is built from `lock` and for this machine. Each import has a process of its own, so that
/// one that crashes or hangs (two minutes) is a failed one. A package that came in with another is
/// not imported again. It finds what was forgotten, not malice: packages share an interpreter's
/// environment, and one that wants to can answer for another. All of it has half an hour. An image
/// without Python packages has nothing to import.
ImportTrial try_imports(const Image& image, const Lock& lock, Store& store, Progress& progress);

/// From the program's answer, a JSON object a line: `shown` names it in errors. Throws
/// `imports-failed` for lines of another kind.
ImportTrial read_import_trial(std::string_view answer, const std::string& shown);

/// The shared library that the message of a failed import names as missing, if any.
void find_cause(FailedImport& failed);

}  // namespace mlenv
