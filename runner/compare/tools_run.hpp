#pragma once
// Several programs of the tools' image, one after the other in one start.
#include <string>
#include <vector>

#include "runner/compare/probes.hpp"

namespace mlenv::compare {

/// With what their words stand for: `--threads=N`, `HOST`.
std::vector<ToolSpec> tools_on(const Bench& bench, const ProbeSpec& probe, const ActiveSide& side);

/// What a shell runs: each tool after a line that read_tools knows, with its errors.
std::string tools_script(const std::vector<ToolSpec>& tools);

/// A figure or a reason for each of them. On the bare host each is a start of its own, since a
/// shell there would find this host's programs. Throws `cannot-start`.
Found run_tools(const Bench& bench, const ProbeSpec& probe, const ActiveSide& side,
                std::chrono::milliseconds deadline, StopSignals& signals);

}  // namespace mlenv::compare
