#pragma once
// An image made ready for imports: each has a sandbox, a Python and a writable folder of its own.
#include <chrono>
#include <string>
#include <vector>

#include "base/pool.hpp"
#include "base/progress.hpp"
#include "builder/imports/import_once.hpp"
#include "builder/run/layer_stack.hpp"
#include "builder/run/lent_tree.hpp"
#include "images/inspect/image_facts.hpp"
#include "images/store.hpp"

namespace mlenv {

class ImportPlace {
 public:
  ImportPlace(const Image& image, Store& store, Progress& progress);

  LayerStack& stack() { return below_; }
  Pool& pool() { return pool_; }
  /// As import_once has it; may be called by several threads.
  ImportOutcome once(const std::vector<std::string>& names, std::chrono::seconds limit) const;

 private:
  TemporaryFolder scratch_;
  Pool pool_;
  LayerStack below_;
  LentTree lent_;
  std::vector<std::string> env_;
};

inline constexpr std::chrono::seconds kImportLimit{120};

/// Nothing of a build's machine has what it wants: an NVIDIA driver.
bool wants_driver(const FailedImport& failed);

}  // namespace mlenv
