#include "cli/logs_job.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/standard_output.hpp"
#include "cli/folder_events.hpp"
#include "cli/slurm_jobs.hpp"
#include "runner/job/job_json.hpp"
#include "runner/job/job_output.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::cli {
namespace {

struct RankLine {
  std::uint64_t attempt = 0;
  std::optional<std::uint64_t> rank;  ///< nothing: a remark of mlenv's about the job
  std::string text;
};

/// Lines of all ranks, of what is there the oldest first.
class MergedLog {
 public:
  MergedLog(fs::path folder, std::optional<std::uint64_t> only)
      : folder_(std::move(folder)), only_(only) {}

  /// Takes up ranks that are new.
  void look(const RecordedRanks& ranks, const FolderEvents& events) {
    const fs::path own = log_folder(folder_);
    if (!only_ && !has_remarks_ && fs::exists(own)) {
      has_remarks_ = true;
      events.add(own);
      parts_.push_back({0, std::nullopt, LogReader{own}, {}});
    }
    for (const RecordedJobAttempt& attempt : ranks.attempts) {
      for (const RecordedRankEnd& rank : attempt.ranks) {
        if (only_ && *only_ != rank.rank) continue;
        if (!known_.emplace(attempt.number, rank.rank).second) continue;
        const fs::path folder = log_folder(job::rank_folder(folder_, attempt.number, rank.rank));
        events.add(folder);
        parts_.push_back({attempt.number, rank.rank, LogReader{folder}, {}});
      }
    }
  }
  /// The job has a log of its own, which tells of restarts.
  bool has_remarks() const { return has_remarks_; }

  std::optional<RankLine> next() {
    Part* oldest = nullptr;
    for (Part& part : parts_) {
      if (!part.head) part.head = part.reader.next();
      if (!part.head) continue;
      if (oldest == nullptr || *part.head < *oldest->head) oldest = &part;
    }
    if (oldest == nullptr) return std::nullopt;
    RankLine line{oldest->attempt, oldest->rank, *std::move(oldest->head)};
    oldest->head.reset();
    return line;
  }

 private:
  struct Part {
    std::uint64_t attempt;
    std::optional<std::uint64_t> rank;
    LogReader reader;
    std::optional<std::string> head;
  };
  fs::path folder_;
  std::optional<std::uint64_t> only_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> known_;
  std::deque<Part> parts_;
  bool has_remarks_ = false;
};

class ShownJob {
 public:
  ShownJob(const Ui& ui, const JobLogOptions& options)
      : ui_(ui),
        options_(options),
        output_({ui.color(), options.timestamps, ui.options.json}, job::write_to_streams) {}

  void of(const RecordedRanks& ranks, bool restarts_are_told) {
    restarts_are_told_ = restarts_are_told;
    for (const RecordedJobAttempt& attempt : ranks.attempts) {
      world_[attempt.number] = options_.rank ? 1 : attempt.ranks.size();
    }
  }
  void show(const RankLine& line) {
    if (line.text < options_.since) return;
    if (!line.rank) return remark(line.text);
    if (!shown_ || *shown_ != line.attempt) {
      if (shown_ && !restarts_are_told_ && !ui_.options.json) {
        ui_.say(fmt::format("mlenv: restart {}", line.attempt));
      }
      shown_ = line.attempt;
      output_.begin(world_[line.attempt], line.attempt);
    }
    output_.show(*line.rank, line.text);
  }
  void flush() { output_.flush(); }

 private:
  void remark(const std::string& text) const {
    if (ui_.options.json) return ui_.answer(job::log_line_json({}, {}, text));
    const std::optional<LogLine> line = parse_log_line(text);
    if (!line) return;
    const std::string when = options_.timestamps ? std::string(line->time) + " " : "";
    ui_.say(fmt::format("{}mlenv: {}", when, line->text));
  }

  const Ui& ui_;
  const JobLogOptions& options_;
  job::JobOutput output_;
  std::map<std::uint64_t, std::uint64_t> world_;  ///< by attempt
  std::optional<std::uint64_t> shown_;            ///< attempt
  bool restarts_are_told_ = false;
};

void require_rank(const RecordedRanks& ranks, const std::string& id, std::uint64_t rank) {
  const bool there =
      std::any_of(ranks.attempts.begin(), ranks.attempts.end(),
                  [&](const RecordedJobAttempt& attempt) { return rank < attempt.ranks.size(); });
  if (there) return;
  throw usage_error("no-rank", "job `{}` has no rank {}", id, rank)
      .hint(fmt::format("`mlenv runs show {}` lists them", id));
}

}  // namespace

void show_job_log(const Ui& ui, const RunRecords& records, const std::string& id,
                  const JobLogOptions& options) {
  const FolderEvents events{records.folder_of(id)};
  MergedLog log{records.folder_of(id), options.rank};
  ShownJob shown{ui, options};
  SlurmRunLife life{ui, records, id};
  // Before the logs are read: what ranks wrote is all there when the job has ended.
  bool goes_on = options.follow ? life.goes_on() : records.goes_on(id);
  const auto look = [&] {
    RecordedRanks ranks = records.read_brief(id).ranks.value_or(RecordedRanks{});
    log.look(ranks, events);
    shown.of(ranks, log.has_remarks());
    return ranks;
  };
  const RecordedRanks ranks = look();
  if (options.rank && !(goes_on && ranks.attempts.empty())) require_rank(ranks, id, *options.rank);
  if (options.lines) {
    std::deque<RankLine> kept;
    while (std::optional<RankLine> line = log.next()) {
      kept.push_back(*std::move(line));
      if (kept.size() > *options.lines) kept.pop_front();
    }
    for (const RankLine& line : kept) shown.show(line);
  }
  while (true) {
    while (const std::optional<RankLine> line = log.next()) shown.show(*line);
    if (!options.follow || !goes_on || answer_error() != 0) break;
    events.wait();
    goes_on = life.goes_on();
    look();
  }
  shown.flush();
}

}  // namespace mlenv::cli
