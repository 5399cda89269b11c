#pragma once
// The `run` steps of a build, one after another, each on top of all before it. A step whose layer
// is known is not executed: first what an earlier build of the same inputs recorded, where that
// layer can be had, then what the store knows of its key.
#include <string>
#include <vector>

#include "base/pool.hpp"
#include "base/progress.hpp"
#include "builder/run/run_step.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

class StepRunner {
 public:
  /// `env`: of the image.
  StepRunner(const Lock& lock, std::vector<std::string> env, std::string workdir,
             const RunOptions& options, Store& store, Progress& progress, unsigned jobs);

  /// Puts a layer on top of what the next step sees. `owned`: its entries may have other owners
  /// than 0:0.
  void put(const Layer& layer, bool owned);

  struct Outcome {
    Digest key;
    Layer layer;
    bool reused = false;
  };
  /// The layer of step `number`, put on top. Throws as run_step does.
  Outcome run(std::size_t number);

 private:
  std::optional<Layer> recorded_layer() const;
  Layer execute(const RunJob& job);

  const Lock& lock_;
  std::vector<std::string> env_;
  std::string workdir_;
  const RunOptions& options_;
  Store& store_;
  Progress& progress_;
  unsigned jobs_;
  std::vector<Layer> below_;
  std::vector<Layer> unread_;  // owners in them are not in owners_ yet
  ImageOwners owners_;
};

}  // namespace mlenv
