#include "runner/job/job_places.hpp"

#include "runner/job/interfaces.hpp"
#include "runner/node/node_gpus.hpp"

namespace mlenv::job {
namespace {

/// That a rank on a node of these facts sees.
std::uint64_t gpus_seen(const std::string& word, const Facts& facts) {
  if (!facts.gpus) return 0;
  const GpuChoice choice = asked_gpus(word);
  if (choice.kind == GpuChoice::Kind::none) return 0;
  if (choice.kind == GpuChoice::Kind::count) return choice.count;
  return choice.kind == GpuChoice::Kind::named ? choice.devices.size() : facts.gpus->size();
}

}  // namespace

Place place_in(const DrivePlan& plan, const NodeState& node, std::size_t nodes,
               std::vector<std::uint16_t> ports) {
  Place place = place_of(plan.job, nodes,
                         {node.offer.name, node.offer.address, node.offer.interface}, *node.hello);
  place.ports = std::move(ports);
  place.gpus = gpus_seen(plan.gpus, *node.facts);
  place.host = node.hello->host;
  return place;
}

}  // namespace mlenv::job
