#pragma once
// A node that is ready, as the plan of ranks has it.
#include <cstdint>
#include <vector>

#include "runner/job/drive.hpp"

namespace mlenv::job {

/// One of so many nodes; it has told of itself and of its facts. Throws as place_of does
/// (interfaces.hpp).
Place place_in(const DrivePlan& plan, const NodeState& node, std::size_t nodes,
               std::vector<std::uint16_t> ports);

}  // namespace mlenv::job
