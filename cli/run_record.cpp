#include "cli/run_record.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/printable.hpp"
#include "cli/run_options.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/logins.hpp"
#include "recipes/text.hpp"
#include "runner/job/storage_proof.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/local/life.hpp"
#include "runner/record/run_records.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {
namespace {

/// Nothing for a bare name that the caller has not set: the run does not get it either.
std::optional<RecordedVariable> recorded(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals);
  std::optional<std::string> value;
  if (equals != std::string::npos) {
    value = text.substr(equals + 1);
  } else {
    const std::map<std::string, std::string> all = all_variables();
    const auto found = all.find(name);
    if (found == all.end()) return std::nullopt;
    value = found->second;
  }
  if (is_secret_name(name)) return RecordedVariable{name, std::nullopt};
  return RecordedVariable{name, without_logins(*value)};
}

double seconds_since_utc(const std::string& utc) {
  const auto when = parse_utc(utc);
  if (!when) return 0;
  return std::chrono::duration<double>(std::chrono::system_clock::now() - *when).count();
}

std::string run_state_text(const RunRecord& record) {
  if (record.state == "running" && record.attempts) {
    return fmt::format("running (attempt {})", record.attempts->ended + 1);
  }
  if (record.end && record.end->ended_by == "timeout") return "failed (timeout)";
  if (record.end && record.end->ended_by == "stop") {
    const bool of_its_own = !record.end->signal && record.end->exit_code != 0;
    return of_its_own ? fmt::format("stopped ({})", record.end->exit_code) : "stopped";
  }
  if (record.state == "failed") return fmt::format("failed ({})", record.end->exit_code);
  if (record.state != "killed") return record.state;
  const std::string name = signal_name(static_cast<int>(record.end->signal.value_or(0)));
  return name.empty() ? fmt::format("killed ({})", *record.end->signal)
                      : fmt::format("killed ({})", name);
}

/// As a shell would take it, near enough to read.
std::string command_text(const RunStart& start) {
  if (start.argv.empty()) return "(the image's own)";
  std::string text;
  for (const std::string& word : start.argv) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$`;|&<>()*?[]#~!") == std::string::npos;
    if (!text.empty()) text += ' ';
    text += plain ? word : "'" + word + "'";
  }
  return printable(text);
}

std::string_view lost_text(const RunRecord& record) {
  const std::optional<std::string> boot = read_file_if_exists("/proc/sys/kernel/random/boot_id");
  return boot && trim(*boot) != record.start.boot_id
             ? "the machine was restarted before it ended"
             : "mlenv was killed before it ended, or could not write its end";
}

std::string usage_text(const RunUsage& usage) {
  std::string text =
      fmt::format("{} of processor time", duration_text(usage.user_seconds + usage.system_seconds));
  if (usage.largest_process_bytes) {
    text += ", largest process " + human_bytes(*usage.largest_process_bytes);
  }
  return fmt::format("{}, {} read, {} written", text, human_bytes(usage.read_bytes),
                     human_bytes(usage.written_bytes));
}

/// `3.9 of 16 processors on average (24 %)`; empty where nobody can say.
std::string busy_text(const RunRecord& record) {
  constexpr double kShortest = 1;  // seconds, below which starting is most of it
  const RunEnd& end = *record.end;
  if (!record.facts || end.seconds < kShortest) return {};
  const std::optional<double> usable = usable_processors(record.facts->cpu);
  if (!usable || *usable <= 0) return {};
  const double busy = (end.usage.user_seconds + end.usage.system_seconds) / end.seconds;
  return fmt::format("{:.1f} of {:.4g} processors on average ({:.0f} %)", busy, *usable,
                     100 * busy / *usable);
}

std::string vm_text(const VmUse& vm) {
  const std::string kind = vm.accelerator == "kvm" ? "KVM" : "emulated: " + vm.why;
  const std::string disk =
      vm.disk_bytes > 0 ? fmt::format(", {} for what it writes", human_bytes(vm.disk_bytes)) : "";
  return fmt::format("{}, Linux {}, {}, {}{}; {}", vm.machine, vm.kernel,
                     counted(vm.cpus, "processor"), human_bytes(vm.memory_bytes), disk, kind);
}

std::string code_text(const CodeState& code) {
  constexpr std::size_t kBrief = 12;
  if (!code.commit && !code.changed) return "unknown: " + printable(code.commit.source);
  std::string text = code.commit ? "commit " + code.commit->substr(0, kBrief) : "no commit yet";
  if (code.branch) text += fmt::format(" ({})", *code.branch);
  if (!code.changed)
    return printable(text + ", what is changed is unknown: " + code.changed.source);
  if (code.changed->empty()) return printable(text + ", nothing changed");
  text +=
      fmt::format(", {} changed: {}", counted(code.changed->size(), "file"), code.changed->front());
  if (code.changed->size() > 1) text += ", …";
  return printable(text);
}

std::string host_text(const Facts& facts) {
  std::vector<std::string> parts;
  const auto add = [&](const Text& text, std::string_view before) {
    if (text) parts.push_back(std::string(before) + *text);
  };
  add(facts.system.distribution_title, "");
  add(facts.system.kernel, "Linux ");
  add(facts.cpu.model, "");
  if (facts.cpu.usable) parts.push_back(counted(*facts.cpu.usable, "processor"));
  if (facts.memory.total_bytes) parts.push_back(human_bytes(*facts.memory.total_bytes));
  return printable(join(parts, ", "));
}

/// Lines with a label each.
class LabelledLines {
 public:
  void add(std::string_view label, std::string_view text) {
    lines_.push_back(fmt::format("{:<9} {}", label, text));
  }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

std::string kept_text(std::optional<std::uint64_t> bytes) {
  const std::string text = "what it wrote to the image";
  return bytes ? fmt::format("{}, {}", text, human_bytes(*bytes)) : text;
}

std::string log_text(const RecordedLog& output) {
  std::string text =
      fmt::format("{} on standard output, {} on standard error", human_bytes(output.out.size_bytes),
                  human_bytes(output.err.size_bytes));
  if (output.lost_bytes > 0) text += fmt::format(", {} lost", human_bytes(output.lost_bytes));
  return text;
}

void add_attempts(const RunRecord& record, LabelledLines& lines) {
  if (!record.attempts) return;
  constexpr std::size_t kShown = 5;
  const std::vector<RecordedAttempt>& last = record.attempts->last;
  for (std::size_t i = last.size() > kShown ? last.size() - kShown : 0; i < last.size(); ++i) {
    lines.add("attempt", fmt::format("{}: status {}, after {}", last[i].number, last[i].exit_code,
                                     duration_text(last[i].seconds)));
  }
}

std::string values_text(const RecordedVariation& variation) {
  std::vector<std::string> parts;
  for (const RecordedVariable& one : variation.values) {
    parts.push_back(fmt::format("{}={}", one.name, one.value.value_or(std::string(kMasked))));
  }
  return printable(join(parts, " "));
}

void add_variation(const RecordedVariation& variation, LabelledLines& lines) {
  lines.add("matrix", printable(fmt::format("{}, variation {} of {}", variation.matrix,
                                            variation.number, variation.of)));
  lines.add("", values_text(variation));
  lines.add("folder", printable(variation.folder));
}

std::string count_text(const RecordedLaunch& launch) {
  if (launch.least_nodes == launch.most_nodes) return counted(launch.most_nodes, "node");
  return fmt::format("{} to {}", launch.least_nodes, counted(launch.most_nodes, "node"));
}

/// Of a run on several nodes.
void add_launch(const RecordedLaunch& launch, LabelledLines& lines) {
  lines.add("nodes",
            printable(fmt::format("{} by {}, {} each, {}{}", count_text(launch), launch.engine,
                                  counted(launch.ranks_per_node, "rank"), launch.strategy,
                                  launch.framework == "none" ? "" : " with " + launch.framework)));
  if (launch.interface) lines.add("interface", printable(*launch.interface));
  if (launch.restarts > 0) lines.add("restarts", fmt::format("at most {}", launch.restarts));
  if (launch.code_digest) lines.add("snapshot", printable(*launch.code_digest));
}

std::string rank_text(const RecordedRankEnd& rank) {
  std::string state = "runs, or its node was lost";
  if (rank.exit_code) state = fmt::format("status {}", *rank.exit_code);
  if (rank.out_of_memory) state += ", out of memory";
  if (rank.stopped) state += ", told to end";
  if (rank.replaced > 0) state += ", started again alone " + counted(rank.replaced, "time");
  return printable(fmt::format("{} on {}, {}: {}{}", rank.rank, rank.node, rank.role, state,
                               rank.run ? fmt::format("  ({})", *rank.run) : ""));
}

std::string node_data_text(const RecordedNodeData& data) {
  std::string how = data.how + " at " + data.path;
  if (data.how == "staged") {
    how += fmt::format(", {} bytes sent in {}", data.sent_bytes, duration_text(data.seconds));
  }
  return printable(fmt::format("{} on {}, {}", data.name, data.node, how));
}

/// `2 nodes left, 1 came`; empty: neither.
std::string change_text(std::size_t left, std::size_t came, std::uint64_t alone) {
  std::vector<std::string> parts;
  if (left > 0) parts.push_back(counted(left, "node") + " left");
  if (came > 0) parts.push_back(counted(came, "node") + " came");
  if (alone > 0) parts.push_back(counted(alone, "rank") + " started again alone");
  return join(parts, ", ");
}

void add_changes(const RecordedRanks& ranks, LabelledLines& lines) {
  std::size_t left = 0;
  std::size_t came = 0;
  std::uint64_t alone = 0;
  for (const RecordedJobAttempt& attempt : ranks.attempts) {
    left += attempt.left.size();
    came += attempt.came.size();
    for (const RecordedRankEnd& rank : attempt.ranks) alone += rank.replaced;
  }
  const std::string text = change_text(left, came, alone);
  if (!text.empty()) lines.add("changes", text);
}

void add_attempt(const RecordedJobAttempt& attempt, LabelledLines& lines) {
  std::string text =
      fmt::format("{}, {}", attempt.number + 1, counted(attempt.places.size(), "node"));
  if (!attempt.left.empty()) text += ", without " + join(attempt.left, ", ");
  if (!attempt.came.empty()) text += ", with " + join(attempt.came, ", ");
  lines.add("attempt", printable(text));
}

void add_preflight(const job::Preflight& found, LabelledLines& lines) {
  constexpr std::string_view kLabel = "preflight";
  const std::string text = job::preflight_summary(found);
  lines.add(kLabel, printable(text.substr(kLabel.size() + 2)) + ": " + found.verdict);
  for (const job::PreflightFinding& one : found.findings) {
    lines.add("", printable(one.standing + ": " + one.text));
  }
}

/// What differs between the nodes, and no more.
void add_agreement(const job::Agreement& nodes, LabelledLines& lines) {
  std::string_view label = "differ";
  for (const job::AgreementRow& row : nodes.rows) {
    const bool blocks = row.standing == job::name_of(job::Standing::blocked);
    if (!blocks && row.standing != job::name_of(job::Standing::noted)) continue;
    lines.add(std::exchange(label, ""),
              printable(fmt::format("{}: {}{}", row.what, job::who_has_what(nodes, row),
                                    blocks ? ", which blocks the job" : "")));
  }
}

std::string proof_text(const std::string& how) {
  if (how == job::kByMarker) return "the same: each saw what the first left there";
  if (how == job::kByDevice) return "the same: one folder of one machine";
  if (how == job::kByCompared) return "the same, by its inode and its last change";
  if (how == job::kAlone) return "on one node alone";
  return "not proven to be the same";
}

/// Nodes of which the same is known together.
void add_storage(const std::vector<RecordedNodeStorage>& all, LabelledLines& lines) {
  std::vector<std::pair<const RecordedNodeStorage*, std::vector<std::string>>> groups;
  for (const RecordedNodeStorage& one : all) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& known) {
      return known.first->path == one.path && known.first->type == one.type &&
             known.first->how == one.how;
    });
    if (group == groups.end()) {
      groups.push_back({&one, {one.node}});
    } else {
      group->second.push_back(one.node);
    }
  }
  for (const auto& [one, nodes] : groups) {
    lines.add("storage",
              printable(fmt::format("{} at {} ({}) on {}: {}", one->name, one->path, one->type,
                                    join(nodes, ", "), proof_text(one->how))));
  }
}

void add_ranks(const RecordedRanks& ranks, LabelledLines& lines) {
  for (const RecordedNodeData& one : ranks.data) lines.add("data", node_data_text(one));
  add_storage(ranks.storage, lines);
  add_changes(ranks, lines);
  for (const RecordedJobAttempt& attempt : ranks.attempts) {
    if (ranks.attempts.size() > 1) add_attempt(attempt, lines);
    for (const RecordedRankEnd& rank : attempt.ranks) lines.add("rank", rank_text(rank));
    if (!attempt.failure) continue;
    const RecordedFirstFailure& failure = *attempt.failure;
    const std::string who = failure.rank ? fmt::format("rank {} on {}", *failure.rank, failure.node)
                                         : fmt::format("node {} was lost:", failure.node);
    lines.add("first", printable(fmt::format("{} {}", who, failure.why)));
  }
}

/// How it was to live.
void add_life(const RunStart& start, LabelledLines& lines) {
  if (start.name) lines.add("name", printable(*start.name));
  if (start.detached) lines.add("detached", "in the background; `mlenv logs` has its output");
  if (start.timeout_seconds) lines.add("timeout", duration_text(*start.timeout_seconds));
  if (start.restart != "no") lines.add("restart", printable(start.restart));
  for (const std::string& id : start.after) lines.add("after", printable("run " + id));
}

void add_end(const RunRecord& record, LabelledLines& lines) {
  if (record.state == "lost") lines.add("ended", lost_text(record));
  if (!record.end) return;
  const RunEnd& end = *record.end;
  lines.add("ended",
            fmt::format("{}, after {}", local_time(end.ended), duration_text(end.seconds)));
  if (end.failure) {
    lines.add("failure", printable(fmt::format("{}: {}", end.failure->code, end.failure->message)));
    return;
  }
  if (end.ended_by == "stop") lines.add("", "by `mlenv stop`");
  if (end.ended_by == "timeout") lines.add("", "by its `--timeout`");
  if (end.out_of_memory) {
    lines.add("memory", "the kernel killed a process of it for want of memory");
  }
  lines.add("used", usage_text(end.usage));
  if (const std::string busy = busy_text(record); !busy.empty()) lines.add("busy", busy);
  if (end.log) lines.add("log", log_text(*end.log));
}

void add_host(const RunRecord& record, LabelledLines& lines) {
  if (!record.facts)
    return lines.add("host", printable(record.start.host) + ", its facts were not read");
  lines.add("host", printable(record.start.host) + ": " + host_text(*record.facts));
  const Text& driver = record.facts->nvidia.kernel_driver;
  if (driver && *driver != "none") lines.add("driver", printable(*driver));
  if (!record.facts->gpus) return;
  for (const Gpu& gpu : *record.facts->gpus) {
    lines.add("gpu", printable(fmt::format("{}  {}", gpu.name.value.value_or("unknown"),
                                           gpu.uuid.value.value_or(""))));
  }
}

}  // namespace

std::string local_time(const std::string& utc) {
  const auto when = parse_utc(utc);
  if (!when) return printable(utc);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(*when);
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

RunStart run_start(const LocalRun& run, const Image& image, const RunBackground& background) {
  RunStart start;
  start.mlenv = MLENV_VERSION;
  start.checked = background.checked;
  for (const CdiName& device : background.devices) {
    start.devices.push_back(device.kind + "=" + device.device);
  }
  start.image = {background.image_name, image.digest().str(), std::nullopt};
  const auto lock = image.settings.labels.find("dev.mlenv.lock");
  if (lock != image.settings.labels.end()) start.image.lock_digest = lock->second;
  start.argv = without_secrets(run.argv);
  start.options = run.options;
  start.layer = background.layer;
  if (!run.workdir.empty()) start.workdir = run.workdir;
  for (const std::string& variable : run.env) {
    if (auto one = recorded(variable)) start.env.push_back(*std::move(one));
  }
  for (const Mount& mount : run.mounts) {
    start.mounts.push_back(recorded_mount(mount));
  }
  if (run.project) start.project = fs::absolute(*run.project).lexically_normal().string();
  if (!run.runtime.empty()) start.runtime = run.runtime;
  if (run.engine) start.runtime = run.engine->title();
  return start;
}

void settle_sources(LocalRun& run, RunStart& start) {
  settle(run);
  record_settled(run, start);
}

void record_settled(const LocalRun& run, RunStart& start) {
  const auto record = [&](const fs::path& source, std::string& into) {
    if (is_settled(run, source)) into = source.string();
  };
  if (run.project && start.project) record(*run.project, *start.project);
  const std::size_t count = std::min(start.mounts.size(), run.mounts.size());
  for (std::size_t i = 0; i < count; ++i) record(run.mounts[i].source, start.mounts[i].source);
}

RecordedMount recorded_mount(const Mount& mount) {
  RecordedMount made{mount.source.string(), mount.target, mount.read_only};
  if (!mount.storage.empty()) made.storage = mount.storage;
  return made;
}

std::string mount_text(const RecordedMount& mount) {
  return fmt::format("{} at {}{}{}", mount.source, mount.target,
                     mount.read_only ? ", read-only" : "",
                     mount.storage ? ", storage " + *mount.storage : "");
}

std::string duration_text(double seconds) {
  constexpr double kMinute = 60;
  constexpr double kHour = 3600;
  if (seconds < kMinute) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (seconds < kHour) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::optional<double> usable_processors(const CpuFacts& cpu) {
  constexpr double kThousand = 1000;
  if (!cpu.usable) return std::nullopt;
  auto count = static_cast<double>(*cpu.usable);
  if (cpu.limit_millicpus && cpu.limit_millicpus->most) {
    count = std::min(count, static_cast<double>(*cpu.limit_millicpus->most) / kThousand);
  }
  return count;
}

RunLine run_line(const RunRecord& record) {
  const double seconds = record.end ? record.end->seconds : seconds_since_utc(record.start.started);
  return {record.start.id,
          printable(record.start.name.value_or("")),
          local_time(record.start.started),
          run_state_text(record),
          record.state == "lost" ? "" : duration_text(seconds),
          printable(record.start.image.name),
          command_text(record.start),
          record.start.variation ? values_text(*record.start.variation) : ""};
}

std::vector<std::string> run_text(const RunRecord& record,
                                  std::optional<std::uint64_t> kept_bytes) {
  const RunStart& start = record.start;
  LabelledLines lines;
  lines.add("run", fmt::format("{}  {}", start.id, run_state_text(record)));
  lines.add("image", printable(fmt::format("{}  {}", start.image.name, start.image.digest)));
  if (start.image.lock_digest) lines.add("lock", printable(*start.image.lock_digest));
  lines.add("command", command_text(start));
  if (start.variation) add_variation(*start.variation, lines);
  if (start.launch) add_launch(*start.launch, lines);
  if (start.job) {
    lines.add("job", printable(fmt::format("{}, rank {} of {} on {}", start.job->job,
                                           start.job->rank, start.job->of, start.job->node)));
  }
  if (start.workdir) lines.add("workdir", printable(*start.workdir));
  for (const RecordedVariable& variable : start.env) {
    lines.add("env", printable(fmt::format("{}={}", variable.name,
                                           variable.value.value_or(std::string(kMasked)))));
  }
  for (const RecordedMount& mount : start.mounts) {
    lines.add("mount", printable(mount_text(mount)));
  }
  for (const std::string& device : start.devices) lines.add("device", printable(device));
  if (const std::string text = options_text(start.options); !text.empty()) {
    lines.add("options", printable(text));
  }
  if (const auto& layer = start.layer) {
    if (layer->from) lines.add("from", printable(fmt::format("what run {} kept", *layer->from)));
    if (layer->kept) lines.add("kept", kept_text(kept_bytes));
  }
  if (const auto& switches = start.deterministic) {
    lines.add("seed", fmt::format("{}, of `--deterministic`", switches->seed));
  }
  if (record.vm) lines.add("vm", printable(vm_text(*record.vm)));
  if (!start.checked) lines.add("check", "--no-check: whether it runs there was not asked");
  add_life(start, lines);
  if (start.project) lines.add("project", printable(*start.project));
  if (record.code) lines.add("code", code_text(*record.code));
  lines.add("started", local_time(start.started));
  if (record.preflight) add_preflight(*record.preflight, lines);
  if (record.agreement) add_agreement(*record.agreement, lines);
  if (record.ranks) add_ranks(*record.ranks, lines);
  add_attempts(record, lines);
  add_end(record, lines);
  add_host(record, lines);
  return lines.take();
}

}  // namespace mlenv::cli
