#include "runner/compare/probes.hpp"

#include <poll.h>
#include <list>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/compare/output.hpp"
#include "runner/compare/side_files.hpp"
#include "runner/compare/snapshot.hpp"
#include "runner/compare/tools_run.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kCommandScript = "command.py";
constexpr std::string_view kMarkCommand = "echo mlenv-compare mark user";

Wanted tools_or_image(const Bench& bench, std::vector<std::string> argv) {
  return {bench.has_python ? Which::image : Which::tools, std::move(argv), true};
}

Wanted training(bool start_alone) {
  Wanted wanted{Which::image, {"python3", "training.py"}, true};
  if (start_alone) wanted.argv.emplace_back("--start-alone");
  return wanted;
}

Wanted command_wanted(const Bench& bench) {
  Wanted wanted{Which::image, bench.command, true, true};
  if (bench.has_python) {
    const std::string script = std::string(kWorkTarget) + "/" + kCommandScript;
    wanted.argv.insert(wanted.argv.begin(), {"python3", script});
  }
  return wanted;
}

Wanted wanted_by(const Bench& bench, const ProbeSpec& probe) {
  switch (probe.kind) {
    case ProbeKind::training:
    case ProbeKind::cold_training:
      return training(probe.kind == ProbeKind::cold_training);
    case ProbeKind::command:
      return command_wanted(bench);
    case ProbeKind::script:
      return tools_or_image(bench, {"python3", probe.script});
    case ProbeKind::start:
    case ProbeKind::cold:
    case ProbeKind::instances:
    case ProbeKind::tools:
    case ProbeKind::snapshot:
      break;
  }
  return {Which::image, {"sh", "-c", std::string(kMarkCommand)}, false};
}

void add_mark(Found& found, const Launched& launched, const char* mark, const char* row) {
  const auto at = launched.marks.find(mark);
  if (at != launched.marks.end()) found.values[row] = at->second;
}

void add_command(Found& found, const Launched& launched) {
  found.values["command.wall"] = launched.seconds;
  const std::optional<Used> used = read_used(launched.err);
  if (!used) {
    const std::string why = "no Python of the image could ask the kernel for it";
    found.whys["command.cpu"] = found.whys["command.memory"] = why;
    return;
  }
  found.values["command.cpu"] = used->cpu;
  found.values["command.memory"] = used->memory;
}

/// `6.1.0-28-amd64 BOOT-ID`: whose kernel it is shows its boot id.
void tell_kernel(Found& found, const Bench& bench) {
  const auto text = found.texts.find("isolation.kernel");
  if (text == found.texts.end()) return;
  const std::size_t blank = text->second.rfind(' ');
  if (blank == std::string::npos) return;
  const bool same = text->second.substr(blank + 1) == bench.own_boot_id;
  text->second = text->second.substr(0, blank) + (same ? ", the host's" : ", its own");
}

/// `PyTorch 2.5.1, cuda` → `cuda`.
std::optional<std::string> device_in(const std::map<std::string, std::string>& texts) {
  const auto text = texts.find("train.step");
  if (text == texts.end()) return std::nullopt;
  const std::size_t comma = text->second.rfind(", ");
  if (comma == std::string::npos) return std::nullopt;
  return text->second.substr(comma + 2);
}

/// What a figure does not cover on that side; empty: nothing.
const char* limit_of(std::string_view row, const ActiveSide& side) {
  if (side.spec->id == "vm" && row == "network.latency") {
    return "from the guest to QEMU alone, which ends TCP there";
  }
  if (side.spec->id == "vm" && (row == "isolation.calls" || row == "isolation.capabilities")) {
    return "of a kernel of its own";
  }
  if (side.spec->id == "bare" && row.starts_with("command.")) {
    return "programs that it finds by PATH are this host's";
  }
  return "";
}

void take_figures(Found& found, const Bench& bench, const ProbeSpec& probe,
                  const Launched& launched) {
  Said said = read_said(launched.out);
  found.texts = std::move(said.texts);
  found.whys = std::move(said.whys);
  found.values = std::move(said.values);
  switch (probe.kind) {
    case ProbeKind::start:
      add_mark(found, launched, "user", "start.user");
      if (launched.last_line && !launched.timed_out)
        found.values["stop"] = launched.seconds - *launched.last_line;
      break;
    case ProbeKind::cold:
      add_mark(found, launched, "user", "start.cold");
      break;
    case ProbeKind::training:
      found.device = device_in(found.texts);
      add_mark(found, launched, "import", "start.import");
      add_mark(found, launched, "step", "start.step");
      break;
    case ProbeKind::cold_training:
      add_mark(found, launched, "import", "start.cold-import");
      break;
    case ProbeKind::command:
      if (!launched.timed_out) add_command(found, launched);
      break;
    case ProbeKind::script:
      tell_kernel(found, bench);
      break;
    case ProbeKind::instances:
    case ProbeKind::tools:
    case ProbeKind::snapshot:
      break;
  }
}

/// Every row of the probe without a figure has a reason.
void complete(Found& found, const ProbeSpec& probe, const ActiveSide& side,
              const std::string& why) {
  // A script's own reason holds for all rows of its probe.
  const std::string reason = found.whys.empty() ? why : found.whys.begin()->second;
  for (const std::string_view row : probe.rows) {
    const std::string id(row);
    if (!found.values.contains(id) && !found.texts.contains(id)) found.whys.emplace(id, reason);
    const std::string limit = limit_of(row, side);
    if (!limit.empty() && found.values.contains(id)) found.texts.emplace(id, limit);
  }
}

/// The person's own, in the folder that they are in. Python does not find the image's programs
/// there by itself.
Command project_command(const Bench& bench, const BareImage& image) {
  Command job = image.command(bench.command, fs::current_path());
  if (!bench.has_python) return job;
  const std::string script = (bench.terms.work / kCommandScript).string();
  Command measured = image.command({"python3", script}, fs::current_path());
  measured.argv.insert(measured.argv.end(), job.argv.begin(), job.argv.end());
  return measured;
}

double memory_now() { return available_bytes(read_file("/proc/meminfo")).value_or(0); }

/// What was freed or taken a moment ago is counted a moment later.
void settle(StopSignals& signals) {
  constexpr int kMoment = 200;  // ms
  pollfd fd{signals.fd(), POLLIN, 0};
  (void)::poll(&fd, 1, kMoment);
}

Found run_instances(const Bench& bench, const ActiveSide& side, milliseconds deadline,
                    StopSignals& signals) {
  Found found;
  const Wanted wanted{Which::image, {"sh", "-c", "echo; read line"}, false};
  constexpr milliseconds kEnd{20000};
  std::list<Waiting> all;
  settle(signals);
  const double before = memory_now();
  const steady_clock::time_point until = steady_clock::now() + deadline;
  double first = 0;
  for (std::uint64_t i = 0; i < bench.instances; ++i) {
    all.emplace_back(minder_of(bench, side), command_on(bench, side, wanted));
    const auto left = std::chrono::duration_cast<milliseconds>(until - steady_clock::now());
    if (!all.back().ready(std::max(left, milliseconds(0)), signals)) {
      found.stopped = signals.came() != 0;
      found.whys["memory.rest"] = found.whys["memory.added"] =
          fmt::format("instance {} did not start", i + 1);
      return found;
    }
    if (i == 0) {
      settle(signals);
      first = memory_now();
    }
  }
  settle(signals);
  const double last = memory_now();
  for (Waiting& one : all) one.end(kEnd);
  found.values["memory.rest"] = before - first;
  found.values["memory.added"] = (first - last) / static_cast<double>(bench.instances - 1);
  return found;
}

}  // namespace

const Minder& minder_of(const Bench& bench, const ActiveSide& side) {
  return side.spec->id == "bare" ? bench.minders->bare : bench.minders->runs;
}

Command command_on(const Bench& bench, const ActiveSide& side, const Wanted& wanted) {
  if (side.spec->id == "bare") {
    const BareImage* const image = wanted.which == Which::image ? bench.bare : bench.bare_tools;
    if (image == nullptr) {
      throw failure("cannot-start", "the tools' image is not there");
    }
    if (wanted.project) return project_command(bench, *image);
    return image->command(wanted.argv, wanted.folder ? bench.terms.work : fs::path("/"));
  }
  Command command{Purpose{"compare-measured"}};
  command.argv = run_words(*side.spec, bench.terms, side.options, wanted);
  return command;
}

std::string why_of(const Launched& launched, milliseconds deadline) {
  if (launched.timed_out) {
    return fmt::format("it did not end within {:.0f} s",
                       std::chrono::duration<double>(deadline).count());
  }
  for (const std::string_view line : split(launched.err, '\n')) {
    if (line.find(R"("schema":"mlenv.error/1")") == std::string_view::npos) continue;
    if (std::string text = complaint_of(line); !text.empty()) return text;
  }
  std::string last = complaint_of(launched.err);
  if (last.empty()) last = complaint_of(launched.out);
  const std::string status = fmt::format("it ended with status {}", launched.exit.code);
  return last.empty() ? status : fmt::format("{}: {}", status, last);
}

std::string why_of(const Error& error) {
  std::string text;
  for (const std::string& frame : error.frames()) text += (text.empty() ? "" : ": ") + frame;
  return text;
}

Found run_probe(const Bench& bench, const ProbeSpec& probe, const ActiveSide& side,
                milliseconds deadline, StopSignals& signals) {
  const steady_clock::time_point begun = steady_clock::now();
  Found found;
  std::string why = "it gave no such figure";
  const bool is_cold = probe.kind == ProbeKind::cold || probe.kind == ProbeKind::cold_training;
  try {
    const SideFiles cold = is_cold ? files_on(bench, side) : SideFiles{};
    if (!cold.why.empty()) {
      why = cold.why;
    } else if (probe.kind == ProbeKind::instances) {
      found = run_instances(bench, side, deadline, signals);
    } else if (probe.kind == ProbeKind::tools) {
      found = run_tools(bench, probe, side, deadline, signals);
    } else if (probe.kind == ProbeKind::snapshot) {
      found = run_snapshot(bench, side, deadline, signals);
    } else {
      const Command command = command_on(bench, side, wanted_by(bench, probe));
      if (is_cold) forget_pages(cold.places);
      const Launched launched = launch(minder_of(bench, side), command, deadline, signals);
      found.stopped = launched.stopped;
      found.timed_out = launched.timed_out;
      const bool worked = !launched.timed_out && launched.exit.code == 0;
      // How far it came in its time counts all the same.
      if (worked || launched.timed_out) take_figures(found, bench, probe, launched);
      if (!worked) why = why_of(launched, deadline);
    }
  } catch (const Error& error) {
    why = why_of(error);
  }
  complete(found, probe, side, why);
  found.seconds = std::chrono::duration<double>(steady_clock::now() - begun).count();
  return found;
}

}  // namespace mlenv::compare
