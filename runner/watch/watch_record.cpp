#include "runner/watch/watch_record.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "base/record_json.hpp"
#include "runner/watch/proc.hpp"

namespace mlenv::watch {
namespace {

constexpr RecordKind kWatchKind = {"mlenv.watch/1", "what was seen of a run",
                                   "`mlenv watch --json` prints it"};
constexpr const char* kAnswerFile = "watch.json";

/// What the run might use: processors of its mlenv, the quota around that, and its own limits.
std::optional<double> usable_cpus(const RunRecord& record) {
  constexpr double kThousand = 1000;
  if (!record.facts || !record.facts->cpu.usable) return std::nullopt;
  const CpuFacts& cpu = record.facts->cpu;
  auto count = static_cast<double>(*cpu.usable);
  const JobLimits& limits = record.start.options.limits;
  if (cpu.limit_millicpus && cpu.limit_millicpus->most) {
    count = std::min(count, static_cast<double>(*cpu.limit_millicpus->most) / kThousand);
  }
  if (limits.cpus) count = std::min(count, *limits.cpus);
  if (limits.cpuset) {
    count = std::min(count, static_cast<double>(count_of_cpu_list(*limits.cpuset)));
  }
  return count;
}

}  // namespace

std::string render_sample(const Sample& sample) { return render_record(sample, kWatchKind); }
std::string render_answer(const Answer& answer) { return render_record(answer, kWatchKind); }

void keep_answer(const fs::path& run_folder, const Answer& answer) {
  if (answer.findings.front().rule == "too-short") return;
  try {
    write_file(run_folder / kAnswerFile, render_answer(answer), /*durable=*/false);
  } catch (const Error& error) {
    log::debug("the answer is not kept: {}", error.what());
  }
}

Answer answer_of_ended(const fs::path& run_folder, const RunRecord& record) {
  try {
    const fs::path file = run_folder / kAnswerFile;
    const std::optional<std::string> kept = read_file_if_exists(file);
    if (kept) {
      Answer answer = read_record<Answer>(*kept, file.string(), kWatchKind);
      if (!answer.findings.empty()) return answer;
    }
  } catch (const Error& error) {
    log::debug("the answer that was kept is left out: {}", error.what());
  }
  Totals totals;
  totals.usable_cpus = usable_cpus(record);
  totals.has_gpus = has_gpus(record.start.devices);
  if (record.end) {
    totals.seconds = record.end->seconds;
    totals.cpu_seconds = record.end->usage.user_seconds + record.end->usage.system_seconds;
  }
  return answer_of(totals);
}

}  // namespace mlenv::watch
