#include "runner/compare/probe_part.hpp"

#include <algorithm>

namespace mlenv::compare {
namespace {

bool needs_tools(const ProbeSpec& probe, const Bench& bench) {
  return probe.kind == ProbeKind::tools || (probe.kind == ProbeKind::script && !bench.has_python);
}

const ToolSpec* tool_for(const ProbeSpec& probe, std::string_view row) {
  for (const ToolSpec& tool : probe.tools) {
    if (tool.row == row) return &tool;
  }
  return nullptr;
}

bool reads_past_cache(const ToolSpec& tool) {
  return std::find(tool.argv.begin(), tool.argv.end(), "--direct=1") != tool.argv.end();
}

/// Empty: it can be measured.
std::string hindrance(const ProbeSpec& probe, std::string_view row, const Bench& bench,
                      const ActiveSide& side, const Ready& ready) {
  if (needs_tools(probe, bench) && !ready.tools) {
    return ready.tools_why.empty() ? "the image with the tools does not start there"
                                   : ready.tools_why;
  }
  if (probe.kind == ProbeKind::snapshot && side.spec->id == "bare") {
    return "what is written on a bare host is nowhere apart";
  }
  if (probe.kind == ProbeKind::snapshot && side.spec->id == "vm") {
    return "mlenv keeps no state of a virtual machine";
  }
  const bool trains = probe.kind == ProbeKind::training || probe.kind == ProbeKind::cold_training;
  if (trains && !bench.has_python) return "the image has no Python";
  const ToolSpec* const tool = tool_for(probe, row);
  if (tool == nullptr) return "";
  if (side.spec->id == "vm" && reads_past_cache(*tool)) {
    return "its shared folder does not go past this host's page cache";
  }
  if (tool->argv.front() == "iperf3" && !ready.server) return "iperf3 did not start on this host";
  return "";
}

}  // namespace

ProbePart part_on(const ProbeSpec& probe, const Bench& bench, const ActiveSide& side,
                  const Ready& ready, const std::vector<std::string>& rows) {
  ProbePart part{probe, {}};
  part.probe.rows.clear();
  part.probe.tools.clear();
  const bool has_command = probe.kind != ProbeKind::command || !bench.command.empty();
  for (const std::string_view row : probe.rows) {
    if (!is_measured_for(row, rows) || !has_command) continue;
    const std::string why = hindrance(probe, row, bench, side, ready);
    if (!why.empty()) {
      part.whys[std::string(row)] = why;
      continue;
    }
    part.probe.rows.push_back(row);
    if (const ToolSpec* const tool = tool_for(probe, row)) part.probe.tools.push_back(*tool);
  }
  if (!probe.tools.empty()) {
    part.probe.seconds *=
        static_cast<double>(part.probe.tools.size()) / static_cast<double>(probe.tools.size());
  }
  return part;
}

bool is_measured_for(std::string_view row, const std::vector<std::string>& rows) {
  return is_asked(row, rows) || (row == "memory.added" && is_asked("memory.density", rows));
}

}  // namespace mlenv::compare
