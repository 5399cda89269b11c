#include "runner/compare/tools_run.hpp"

#include <algorithm>

#include "runner/compare/output.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

void take_figure(const std::string& row, const ToolSaid& said, const std::string& otherwise,
                 Found& found) {
  const bool worked = said.status && *said.status == 0;
  const std::optional<double> value = worked ? read_tool(row, said.text) : std::nullopt;
  if (value) {
    found.values[row] = *value;
  } else if (said.status && *said.status != 0) {
    const std::string last = complaint_of(said.text);
    found.whys[row] =
        fmt::format("it ended with status {}{}", *said.status, last.empty() ? "" : ": " + last);
  } else {
    found.whys[row] = worked ? "it gave no such figure" : otherwise;
  }
}

Found run_together(const Bench& bench, const std::vector<ToolSpec>& tools, const ActiveSide& side,
                   milliseconds deadline, StopSignals& signals) {
  Found found;
  const Wanted wanted{Which::tools, {"sh", "-c", tools_script(tools)}, true};
  const Launched launched =
      launch(minder_of(bench, side), command_on(bench, side, wanted), deadline, signals);
  found.stopped = launched.stopped;
  found.timed_out = launched.timed_out;
  const std::string why = why_of(launched, deadline);
  std::map<std::string, ToolSaid> all = read_tools(launched.out);
  for (const ToolSpec& tool : tools) {
    const std::string row(tool.row);
    take_figure(row, all[row], why, found);
  }
  return found;
}

Found run_one_by_one(const Bench& bench, const std::vector<ToolSpec>& tools, const ActiveSide& side,
                     milliseconds deadline, StopSignals& signals) {
  Found found;
  const steady_clock::time_point until = steady_clock::now() + deadline;
  for (const ToolSpec& tool : tools) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    const Command command = command_on(bench, side, {Which::tools, tool.argv, true});
    const Launched launched =
        launch(minder_of(bench, side), command, std::max(left, milliseconds(1)), signals);
    found.stopped |= launched.stopped;
    found.timed_out |= launched.timed_out;
    if (found.stopped) return found;
    ToolSaid said{launched.out + launched.err, std::nullopt};
    if (!launched.timed_out) said.status = launched.exit.code;
    take_figure(std::string(tool.row), said, why_of(launched, deadline), found);
  }
  return found;
}

}  // namespace

std::vector<ToolSpec> tools_on(const Bench& bench, const ProbeSpec& probe, const ActiveSide& side) {
  std::vector<ToolSpec> tools = probe.tools;
  for (ToolSpec& tool : tools) {
    for (std::string& word : tool.argv) {
      if (word == "--threads=N") word = fmt::format("--threads={}", bench.terms.processors);
      if (word == "HOST") word = side.spec->network;
    }
    if (tool.argv.front() == "iperf3") {
      tool.argv.insert(tool.argv.end(), {"-p", fmt::format("{}", bench.port)});
    }
  }
  return tools;
}

std::string tools_script(const std::vector<ToolSpec>& tools) {
  std::string script;
  for (const ToolSpec& tool : tools) {
    script += fmt::format("echo mlenv-compare tool {}\n", tool.row);
    for (const std::string& word : tool.argv) script += word + " ";
    script += "2>&1\nstatus=$?; echo; echo mlenv-compare status $status\n";
  }
  return script;
}

Found run_tools(const Bench& bench, const ProbeSpec& probe, const ActiveSide& side,
                milliseconds deadline, StopSignals& signals) {
  const std::vector<ToolSpec> tools = tools_on(bench, probe, side);
  return side.spec->id == "bare" ? run_one_by_one(bench, tools, side, deadline, signals)
                                 : run_together(bench, tools, side, deadline, signals);
}

}  // namespace mlenv::compare
