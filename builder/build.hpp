#pragma once
// Lock → image: a pure function of the lock, the project's files and the layer format, `run` steps
// aside (they come last and are executed one after another). Steps whose
// key the store knows cost a look-up; the others are made side by side, each as soon as its inputs
// are there.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "builder/inputs.hpp"
#include "builder/plan.hpp"
#include "builder/run/run_step.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"
#include "recipes/image_sources.hpp"

namespace mlenv {

struct BuildOptions {
  unsigned jobs = 0;   ///< threads and interpreters; 0: one a processor
  bool unpack = true;  ///< leave it ready to run; false: layers only, for building and pushing
  /// As image_sources gives them for the recipe; their digest is in the lock.
  std::vector<ImageFile> sources;
  ProjectFiles files;  ///< of the recipe, just collected
  RunOptions run;
  /// Told each finished layer, from any thread: pushing overlaps building.
  std::function<void(const Layer&)> on_layer;
  /// Asked where something would have to be made: the image that an earlier build of the same
  /// inputs gave, whole in the store now. Then no input is needed at all. nullopt: not to be had.
  std::function<std::optional<Image>()> finished;
};

struct StepReport {
  std::string title;
  Digest key;
  bool reused = false;
  std::vector<Layer> layers;
};

struct BuildResult {
  Image image;
  std::vector<StepReport> steps;  ///< as in the plan
};

/// Builds into the store (manifest and config published, not tagged). An interrupted build leaves
/// finished layers for the next one. Throws `input-gone` or `input-changed` naming everything that
/// it would need and that can be had nowhere.
BuildResult build(const Lock& lock, Store& store, Inputs& inputs, const BuildOptions& options,
                  Progress& progress);

}  // namespace mlenv
