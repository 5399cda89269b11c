#pragma once
// Measures all rows on all sides, in turn, as long as there is time. What cannot be measured is
// said, never guessed.
#include <map>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "runner/compare/probes.hpp"

namespace mlenv::compare {

struct MeasureOptions {
  std::vector<std::string> sides;  ///< in the report's order
  std::map<std::string, std::vector<std::string>> side_options;
  std::map<std::string, std::string> absent;  ///< by side: why it cannot take part
  std::vector<std::string> rows;              ///< asked for; empty: all
  std::string tools_why;                      ///< there is no tools' image
  bool quick = false;
  double budget_seconds = 0;       ///< to measure in
  double preparing_seconds = 300;  ///< for first starts, of all sides together
  double total_seconds = 0;        ///< of both; 0: no limit but theirs
  double gone_seconds = 0;         ///< of the total, before
};

struct Measured {
  std::vector<SideResult> sides;
  std::vector<RowResult> rows;  ///< in the report's order; samples of session 0
  double seconds = 0;
  int signal = 0;  ///< that ended it early; 0: none
};

/// `signals` end it early.
Measured measure(const MeasureOptions& options, const Bench& bench, StopSignals& signals,
                 Progress& progress);

/// Governor, turbo, load, and what others did in a moment before.
Noise noise_before();
/// Taken by a hypervisor since `before` of /proc/stat.
std::optional<double> steal_since(const std::string& before);

}  // namespace mlenv::compare
