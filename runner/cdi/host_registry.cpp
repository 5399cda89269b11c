#include "runner/cdi/host_registry.hpp"

#include "base/log.hpp"
#include "base/process.hpp"

namespace mlenv {

void add_nvidia(CdiRegistry& registry, const fs::path& cache, const AskMig& ask) {
  if (registry.has(kNvidiaGpu) || !has_nvidia_driver()) return;
  (void)registry.names(std::string(kNvidiaGpu));  // a broken one is not passed over
  std::optional<CdiSpec> spec;
  if (const auto toolkit = find_program("nvidia-ctk")) spec = toolkit_spec(*toolkit, cache / "cdi");
  if (!spec) spec = nvidia_spec("/", ask);
  if (!spec) return;
  log::debug("GPUs are described by {}", spec->shown);
  registry.add(std::move(*spec));
}

}  // namespace mlenv
