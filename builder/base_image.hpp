#pragma once
// A base that is an image: its layers as they are, and its files as one folder.
#include <optional>
#include <vector>

#include "base/progress.hpp"
#include "builder/inputs.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

class BaseImageLayers {
 public:
  BaseImageLayers(Store& store, Inputs& inputs, const LockedBase& base)
      : store_(store), inputs_(inputs), base_(base) {}
  /// Of the locked base, in the store; fetched when some are missing.
  std::vector<Layer> layers() const;
  /// The image's own settings, from its config in the store; fetched when it is missing.
  ImageConfig settings() const;

 private:
  Store& store_;
  Inputs& inputs_;
  const LockedBase& base_;
};

/// The files of a base as one folder, to run programs from; not to be written into. Those of an
/// image are linked together for as long as this lives: the sandbox may need mount points that an
/// image lacks, and the store's trees stay as they are.
class BaseTree {
 public:
  BaseTree(Store& store, const Lock& lock, const std::vector<Layer>& layers, Progress& progress);
  const fs::path& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> merged_;
  fs::path path_;
};

}  // namespace mlenv
