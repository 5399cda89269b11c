#include "runner/job/job_places.hpp"

#include <algorithm>

#include "runner/job/interfaces.hpp"
#include "runner/node/node_gpus.hpp"

namespace mlenv::job {
namespace {

/// That a rank on a node of these facts sees: of all that there are, those that a batch system has
/// given to the job.
std::uint64_t gpus_seen(const std::string& word, const Facts& facts, const NodeHello& hello) {
  if (!facts.gpus) return 0;
  const GpuChoice choice = asked_gpus(word);
  if (choice.kind == GpuChoice::Kind::none) return 0;
  if (choice.kind == GpuChoice::Kind::count) return choice.count;
  if (choice.kind == GpuChoice::Kind::named) return choice.devices.size();
  // What is given may be parts of GPUs, of which there are more.
  const std::uint64_t parts = facts.mig_devices ? facts.mig_devices->size() : 0;
  const std::uint64_t whole = facts.gpus->size();
  return std::min(hello.given_gpus.value_or(whole), std::max(whole, parts));
}

}  // namespace

Place place_in(const DrivePlan& plan, const NodeState& node, std::size_t nodes,
               std::vector<std::uint16_t> ports) {
  Place place = place_of(plan.job, nodes,
                         {node.offer.name, node.offer.address, node.offer.interface}, *node.hello);
  place.ports = std::move(ports);
  place.gpus = gpus_seen(plan.gpus, *node.facts, *node.hello);
  place.host = node.hello->host;
  return place;
}

}  // namespace mlenv::job
