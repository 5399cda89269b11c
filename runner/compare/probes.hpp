#pragma once
// One probe on one side: one start, and the figures that it gave.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runner/compare/launch.hpp"
#include "runner/compare/rows.hpp"
#include "runner/compare/side.hpp"

namespace mlenv::compare {

/// Whoever starts things: one ends all that is left of a command, one asks `mlenv run` to do so.
struct Minders {
  /// Of the bare host's files in `read_only`, if any.
  explicit Minders(const fs::path& read_only) : bare(Ending::kill, read_only) {}
  Minder bare;
  Minder runs{Ending::ask};
};

/// What is there to measure with.
struct Bench {
  SideTerms terms;
  const Minders* minders = nullptr;
  const BareImage* bare = nullptr;  ///< nullptr: the bare host takes no part
  const BareImage* bare_tools = nullptr;
  fs::path store;                    ///< its folder
  std::vector<fs::path> trees;       ///< of the image, unpacked
  std::vector<std::string> command;  ///< the person's own
  bool has_python = false;           ///< in the image
  std::uint64_t port = 0;            ///< of iperf3 on the loopback
  std::uint64_t instances = 4;
  std::string own_boot_id;
};

struct ActiveSide {
  const SideSpec* spec = nullptr;
  std::vector<std::string> options;
};

struct Found {
  std::map<std::string, double> values;      ///< by row
  std::map<std::string, std::string> texts;  ///< by row
  std::map<std::string, std::string> whys;   ///< by row: no figure
  std::optional<std::string> device;         ///< that training ran on
  double seconds = 0;                        ///< that all of it took
  bool timed_out = false;                    ///< another start would take as long
  bool stopped = false;                      ///< by a signal: nothing of it counts
};

/// Whoever starts what is started there.
const Minder& minder_of(const Bench& bench, const ActiveSide& side);
/// What starts `wanted` there. Throws `cannot-start`.
Command command_on(const Bench& bench, const ActiveSide& side, const Wanted& wanted);

Found run_probe(const Bench& bench, const ProbeSpec& probe, const ActiveSide& side,
                std::chrono::milliseconds deadline, StopSignals& signals);

/// Why a launch gave nothing: time, mlenv's own error, the last line of what it wrote.
std::string why_of(const Launched& launched, std::chrono::milliseconds deadline);

/// An error's frames as one line.
std::string why_of(const Error& error);

}  // namespace mlenv::compare
