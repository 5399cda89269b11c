#pragma once
// What of a probe can be measured on a side, and why the rest cannot.
#include <map>
#include <string>
#include <vector>

#include "runner/compare/probes.hpp"

namespace mlenv::compare {

/// What there is to measure with.
struct Ready {
  bool tools = false;     ///< the tools' image starts on the side
  std::string tools_why;  ///< there is no such image
  bool server = false;    ///< iperf3 listens on this host
};

struct ProbePart {
  ProbeSpec probe;                          ///< with the rows that can be; without any: none can
  std::map<std::string, std::string> whys;  ///< by row
};
/// Of the rows that are asked for.
ProbePart part_on(const ProbeSpec& probe, const Bench& bench, const ActiveSide& side,
                  const Ready& ready, const std::vector<std::string>& rows);

/// What fits on the host follows from the memory of one instance.
bool is_measured_for(std::string_view row, const std::vector<std::string>& rows);

}  // namespace mlenv::compare
