#pragma once
// NVML in this process, which may hang with the driver: gpus.hpp has one of its own for it.
#include <map>

#include "runner/facts/library.hpp"
#include "runner/watch/gpus.hpp"

namespace mlenv::watch {

class Nvml {
 public:
  Nvml();
  GpuAnswer ask();

 private:
  GpuNow ask_device(std::uint64_t index);

  Library library_;
  std::optional<std::string> wrong_;  ///< it cannot be used
  /// Of each GPU, the time of the newest figure on its processes that was seen.
  std::map<std::uint64_t, unsigned long long> seen_;
};

}  // namespace mlenv::watch
