#pragma once
// iperf3 on this host's loopback, for as long as a comparison goes on.
#include <optional>

#include "runner/compare/probes.hpp"

namespace mlenv::compare {

/// On the bare host where that takes part, else in a container on the host's network. nullopt: it
/// does not start.
std::optional<Started> start_server(const Bench& bench, StopSignals& signals);

/// A port that nobody listens on right now.
std::uint64_t free_port();

}  // namespace mlenv::compare
