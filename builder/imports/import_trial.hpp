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

/// `image` is built from `lock` and for this machine. Names come from the packages' RECORDs; each
/// is imported in a sandbox, an interpreter and a writable folder of its own, judged from outside,
/// so that a package answers for its own imports alone. Python starts as it does for a program: the
/// image's variables (PYTHONPATH) and `.pth` files count. Several at once; an import has two
/// minutes, those of a package five, all of them half an hour: `imports-failed`. An image without
/// Python packages has nothing to import.
ImportTrial try_imports(const Image& image, const Lock& lock, Store& store, Progress& progress);

/// The shared library that the message of a failed import names as missing, if any.
void find_cause(FailedImport& failed);

}  // namespace mlenv
