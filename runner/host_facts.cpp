#include "runner/host_facts.hpp"

#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

std::string asked_of_nvidia_smi(const FactSources& from) {
  const Text answer =
      from.ask({"nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"});
  return answer ? driver_version(*answer).value_or("") : "";
}

}  // namespace

HostFacts probe_host(const fs::path& root) {
  FactSources from = host_sources({}, {});
  from.root = root;
  HostFacts facts;
  const Text release = os_release(from);
  const Text suite = named_value(release, "VERSION_CODENAME", '=');
  const Text distribution = named_value(release, "ID", '=');
  if (suite && distribution) facts.base = base_of_suite(*distribution, *suite);
  const Text driver = probe_kernel_driver(from);
  if (driver && *driver != "none") facts.nvidia_driver = *driver;
  if (!driver && from.live()) facts.nvidia_driver = asked_of_nvidia_smi(from);
  return facts;
}

}  // namespace mlenv
