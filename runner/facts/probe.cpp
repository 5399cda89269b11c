#include "runner/facts/probe.hpp"

#include <functional>

#include "base/pool.hpp"

namespace mlenv {

Facts probe_facts(const FactSources& from) {
  Facts facts;
  // What waits for other programs comes first.
  const std::vector<std::function<void()>> work = {
      [&] { probe_nvidia(from, facts); },
      [&] { facts.containers.engines = probe_engines(from); },
      [&] { facts.isolation = probe_isolation(from); },
      [&] { probe_host_name(from, facts.network); },
      [&] { facts.time = probe_time(from); },
      [&] { facts.network.interfaces = probe_interfaces(from); },
      [&] { facts.system = probe_system(from); },
      [&] { facts.cpu = probe_cpu(from); },
      [&] { facts.memory = probe_memory(from); },
      [&] { facts.storage = probe_storage(from); },
      [&] { facts.limits = probe_limits(from); },
      [&] { facts.containers.cdi = probe_cdi(from); },
      [&] { facts.network.rdma = probe_rdma(from); },
  };
  constexpr unsigned kAtOnce = 5;  // as many as there are that wait
  Pool(kAtOnce).for_each(work.size(), [&](std::size_t i) { work[i](); });
  return facts;
}

}  // namespace mlenv
