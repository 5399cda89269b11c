// What can be told of a run that nobody watched.
#include <fmt/core.h>

#include "runner/watch/answer.hpp"
#include "runner/watch/thresholds.hpp"

namespace mlenv::watch {

Answer answer_of(const Totals& totals) {
  constexpr double kShortestRun = 10;  // seconds: else imports are most of it
  constexpr double kFewForOneThread = 0.5;
  Answer answer;
  answer.from = "record";
  const auto say = [&](const char* rule, std::string saw, const char* means) {
    std::vector<std::string> advice;
    if (std::string_view(rule) != "healthy" && std::string_view(rule) != "too-short") {
      advice.emplace_back("`mlenv watch` while it runs tells more");
    }
    answer.findings.push_back({rule, std::move(saw), means, std::move(advice)});
  };
  if (totals.seconds < kShortestRun || !totals.usable_cpus || *totals.usable_cpus <= 0) {
    say("too-short", fmt::format("it ran for {:.1f} s", totals.seconds),
        totals.usable_cpus ? "that is too short to say anything"
                           : "nothing is known of the processors that it might use");
    return answer;
  }
  const double used = totals.cpu_seconds / totals.seconds;
  const double usable = *totals.usable_cpus;
  const std::string saw =
      fmt::format("{:.1f} of {:.4g} processors in use, on average from start to end", used, usable);
  if (used >= kBusyCpus * usable) {
    say("healthy", saw,
        totals.has_gpus ? "the processors were in use; of the GPUs nothing was recorded"
                        : "the processors were in use");
  } else if (totals.has_gpus) {
    say("gpus-unknown", saw, "of the GPUs nothing was recorded: nobody watched the run");
  } else if (used < kFewForOneThread) {
    say("waits", saw, "the job waited most of the time, for what is not recorded");
  } else if (used >= kOneThreadLeast && used <= kOneThreadMost) {
    say("one-thread", saw, "as much as one thread could use");
  } else if (used < kFewCpus * usable) {
    say("few-threads", saw, "the job worked in fewer threads than there are processors, or waited");
  } else {
    say("partly-busy", saw, "more than that cannot be told from totals");
  }
  return answer;
}

}  // namespace mlenv::watch
