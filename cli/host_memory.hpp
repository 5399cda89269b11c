#pragma once
// What starts of runs remember of this host, below the cache.
#include <optional>
#include <string_view>
#include <vector>

#include "runner/cdi/gpus.hpp"
#include "runner/facts/facts.hpp"
#include "runner/own_folder.hpp"

namespace mlenv::cli {

/// Nothing where there is no home folder, or it is not ours alone: then nothing is remembered.
std::optional<OwnFolder> cache_of(std::string_view name);

/// This host's, as far as rules that block a run ask for them. NVIDIA's libraries take a second to
/// ask: what they said counts while the driver and the devices are the same.
class KnownHost {
 public:
  explicit KnownHost(bool with_gpus) : with_gpus_(with_gpus) {}
  /// Asked now, and remembered.
  Facts fresh() const;
  std::optional<Facts> remembered() const;

 private:
  bool with_gpus_;
};

/// GPUs and the parts of those that are split: remembered, else asked.
SplitGpus split_gpus();

}  // namespace mlenv::cli
