#include "runner/job/job_recording.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "runner/job/agreement.hpp"
#include "runner/job/node_verdict.hpp"
#include "runner/job/words.hpp"
#include "runner/record/record_files.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

RecordedFirstFailure recorded_failure(const FirstFailure& failure, const AttemptResult& attempt) {
  if (failure.what == FirstFailure::What::node) return {std::nullopt, failure.node, failure.why};
  const RankResult& rank = attempt.ranks.at(failure.rank);
  return {failure.rank, failure.node, why_it_failed(failure, rank)};
}

bool is_among(const std::vector<RecordedPlace>& places, const std::string& node) {
  return std::any_of(places.begin(), places.end(),
                     [&](const RecordedPlace& place) { return place.node == node; });
}

/// Who left and who came between two attempts.
void compare_places(const RecordedJobAttempt& before, RecordedJobAttempt& now) {
  for (const RecordedPlace& place : before.places) {
    if (!is_among(now.places, place.node)) now.left.push_back(place.node);
  }
  for (const RecordedPlace& place : now.places) {
    if (!is_among(before.places, place.node)) now.came.push_back(place.node);
  }
}

}  // namespace

fs::path rank_folder(const fs::path& run_folder, std::uint64_t attempt, std::uint64_t rank) {
  return run_folder / "ranks" / fmt::format("{}.{}", attempt, rank);
}

fs::path node_facts(const fs::path& run_folder, std::string node) {
  std::replace(node.begin(), node.end(), '/', '_');
  return run_folder / "nodes" / (node + ".json");
}

template <class Work>
void JobRecording::try_to(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    if (!std::exchange(failed_, true) && notice_) {
      notice_(fmt::format("the job's record is not whole: {}", error.what()));
    }
  }
}

JobRecording::JobRecording(fs::path folder, std::uint64_t most_log_bytes)
    : folder_(std::move(folder)), most_log_bytes_(most_log_bytes) {
  try_to([&] {
    const fs::path path = folder_ / kRanksFile;
    const std::optional<std::string> before = read_file_if_exists(path);
    if (before) ranks_ = parse_ranks(*before, path.string());
  });
}

void JobRecording::keep_facts(const NodeState& node) {
  if (!node.facts) return;
  try_to([&] {
    const fs::path path = node_facts(folder_, node.offer.name);
    make_own_folders(path.parent_path());
    write_file(path, render_facts(*node.facts), /*durable=*/false);
  });
}

void JobRecording::keep(const Agreement& nodes) {
  try_to([&] { write_file(folder_ / kAgreementFile, render_agreement(nodes), /*durable=*/false); });
}

void JobRecording::write() {
  try_to([&] { write_file(folder_ / kRanksFile, render_ranks(ranks_), /*durable=*/false); });
}

RecordedRankEnd* JobRecording::rank_of(std::uint64_t attempt, std::uint64_t rank) {
  if (ranks_.attempts.empty() || ranks_.attempts.back().number != attempt) return nullptr;
  std::vector<RecordedRankEnd>& all = ranks_.attempts.back().ranks;
  return rank < all.size() ? &all[rank] : nullptr;
}

/// Once for each time that a node came.
void JobRecording::note_data(const NodeState& node) {
  for (const DataPlace& one : node.data) {
    const RecordedNodeData data{node.offer.name, one.name,  one.digest, one.how,
                                one.path,        one.bytes, one.sent,   one.seconds};
    const auto known = std::find(ranks_.data.begin(), ranks_.data.end(), data);
    if (known == ranks_.data.end()) ranks_.data.push_back(data);
  }
}

/// What was found last holds.
void JobRecording::note_storage(const NodeState& node) {
  for (const StorageProven& one : node.storage) {
    RecordedNodeStorage now{node.offer.name, one.use.name, one.use.path,
                            one.use.writes,  one.type,     one.how};
    const auto known = std::find_if(ranks_.storage.begin(), ranks_.storage.end(),
                                    [&](const RecordedNodeStorage& before) {
                                      return before.node == now.node && before.path == now.path;
                                    });
    if (known == ranks_.storage.end()) {
      ranks_.storage.push_back(std::move(now));
    } else {
      *known = std::move(now);
    }
  }
}

void JobRecording::planned(std::uint64_t attempt, const std::vector<Place>& places,
                           const JobPlan& plan) {
  RecordedJobAttempt record;
  record.number = attempt;
  record.started = utc_text(std::chrono::system_clock::now());
  for (const Place& place : places) {
    record.places.push_back({place.name, hosts_[place.name], place.address, place.interface});
  }
  if (!ranks_.attempts.empty()) compare_places(ranks_.attempts.back(), record);
  logs_.clear();
  for (const Rank& rank : plan.ranks) {
    RecordedRankEnd one;
    one.rank = rank.rank;
    one.node = places.at(rank.node).name;
    one.role = rank.role;
    record.ranks.push_back(std::move(one));
    try_to([&] {
      logs_[rank.rank] = std::make_unique<LogWriter>(
          log_folder(rank_folder(folder_, attempt, rank.rank)), most_log_bytes_);
    });
  }
  ranks_.attempts.push_back(std::move(record));
  write();
}

void JobRecording::line(std::uint64_t attempt, std::uint64_t rank, const std::string& text) {
  if (rank_of(attempt, rank) == nullptr) return;
  const auto log = logs_.find(rank);
  if (log == logs_.end()) return;
  log->second->copy(text);
  try_to([&] {
    if (log->second->unremarked() == 0) return;
    throw failure("no-space", "no room for the output of rank {} in `{}`", rank, folder_.string());
  });
}

void JobRecording::ended(const AttemptResult& attempt) {
  if (ranks_.attempts.empty() || ranks_.attempts.back().number != attempt.number) return;
  RecordedJobAttempt& record = ranks_.attempts.back();
  record.ended = attempt.ended;
  for (const RankResult& rank : attempt.ranks) {
    RecordedRankEnd* const one = rank_of(attempt.number, rank.rank.rank);
    if (one == nullptr) continue;
    if (!rank.run.empty()) one->run = rank.run;
    one->stopped = rank.stopped;
    one->replaced = rank.replaced;
    if (!rank.end) continue;
    one->exit_code = rank.end->exit_code;
    one->signal = rank.end->signal;
    one->out_of_memory = rank.end->out_of_memory;
    if (rank.end->record.empty()) continue;
    try_to([&] {
      write_file(rank_folder(folder_, attempt.number, rank.rank.rank) / kStartFile,
                 rank.end->record, /*durable=*/false);
    });
  }
  if (attempt.failure) record.failure = recorded_failure(*attempt.failure, attempt);
  logs_.clear();
  write();
}

/// The job has its status, whether or not a full disk takes the record of it.
void JobRecording::end(RunRecorder& recorder, const RunOutcome& run) {
  try_to([&] { recorder.ended(run); });
}

void JobRecording::gave_up(RunRecorder& recorder, const Error& error) {
  try_to([&] { recorder.gave_up(error, kOwnFailureStatus); });
}

void JobRecording::remark(const std::string& text) {
  try_to([&] {
    if (!remarks_) remarks_ = std::make_unique<LogWriter>(log_folder(folder_), most_log_bytes_);
    remarks_->write(LogStream::remark, printable(text) + "\n");
  });
}

std::function<void(const std::string&)> JobRecording::noting(
    std::function<void(const std::string&)> then) {
  notice_ = then;
  return [this, then = std::move(then)](const std::string& text) {
    remark(text);
    if (then) then(text);
  };
}

void remark_in_log(const fs::path& run_folder, std::uint64_t most_log_bytes,
                   const std::string& text) {
  try {
    LogWriter{log_folder(run_folder), most_log_bytes}.write(LogStream::remark,
                                                            printable(text) + "\n");
  } catch (const Error& error) {
    log::debug("the job's log is not whole: {}", error.what());
  }
}

DriveEvents JobRecording::around(const DriveEvents& then) {
  DriveEvents events = then;
  events.ready = [this, ready = then.ready](const std::vector<NodeState>& nodes) {
    for (const NodeState& node : nodes) {
      if (node.hello) hosts_[node.offer.name] = node.hello->host;
      note_data(node);
      note_storage(node);
      keep_facts(node);
    }
    if (ready) ready(nodes);
  };
  events.preflight = [this, next = then.preflight](const Preflight& found) {
    try_to(
        [&] { write_file(folder_ / kPreflightFile, render_preflight(found), /*durable=*/false); });
    for (const std::string& note : preflight_notes(found)) remark(note);
    if (next) next(found);
  };
  events.planned = [this, next = then.planned](std::uint64_t attempt,
                                               const std::vector<Place>& places,
                                               const JobPlan& plan) {
    planned(attempt, places, plan);
    if (next) next(attempt, places, plan);
  };
  events.line = [this, next = then.line](std::uint64_t attempt, std::uint64_t rank,
                                         const std::string& text) {
    line(attempt, rank, text);
    if (next) next(attempt, rank, text);
  };
  events.attempt_ended = [this, next = then.attempt_ended](const AttemptResult& attempt) {
    ended(attempt);
    if (next) next(attempt);
  };
  return events;
}

RecordedLaunch recorded_launch(const Job& job, const std::string& engine,
                               const std::vector<NodeOffer>& offers,
                               const std::optional<std::string>& code_digest) {
  RecordedLaunch launch;
  launch.engine = engine;
  for (const NodeOffer& offer : offers) launch.offered.push_back(offer.name);
  launch.least_nodes = job.nodes.least;
  launch.most_nodes = job.nodes.most;
  launch.ranks_per_node = job.ranks_per_node;
  launch.strategy = name_of(job.strategy);
  launch.framework = name_of(job.framework);
  launch.restarts = job.restarts;
  if (!job.interface.empty()) launch.interface = job.interface;
  launch.code_digest = code_digest;
  return launch;
}

std::optional<JobOutcome> wait_recorded(const fs::path& store, const RunStart& start,
                                        RunRecorder& recorder, WaitEvents events) {
  events.waiting = [&, then = std::move(events.waiting)](bool waits) {
    recorder.waiting(waits);
    if (then) then(waits);
  };
  try {
    const std::optional<RunOutcome> told = wait_for_runs(store, start.after, events);
    if (!told) return std::nullopt;
    recorder.ended(*told);
    JobOutcome outcome;
    outcome.exit_code = told->exit.code;
    outcome.signal = told->exit.code - kSignalBase;
    outcome.ended_by = told->ended_by;
    return outcome;
  } catch (const Error& error) {
    recorder.gave_up(error, kOwnFailureStatus);
    throw;
  }
}

RunOutcome as_run(const JobOutcome& job) {
  RunOutcome run;
  run.exit.code = job.exit_code;
  run.exit.signalled = job.signal != 0 && job.exit_code == kSignalBase + job.signal;
  run.ended_by = job.ended_by;
  run.attempts = job.attempts.size();
  return run;
}

JobOutcome drive_recorded(Store& store, NodeStarter& starter, const DrivePlan& plan,
                          RunRecorder& recorder, DriveEvents events) {
  JobRecording recording{recorder.folder(), plan.most_log_bytes};
  const auto began = std::move(events.planned);
  events.planned = [&](std::uint64_t attempt, const std::vector<Place>& places,
                       const JobPlan& ranks) {
    recorder.started();
    if (began) began(attempt, places, ranks);
  };
  events.notice = recording.noting(std::move(events.notice));
  NodeChecks checks{plan, events.notice,
                    [&, then = std::move(events.differ)](const Agreement& found) {
                      recording.keep(found);
                      if (then) then(found);
                    }};
  events.ready = [&, then = std::move(events.ready)](const std::vector<NodeState>& nodes) {
    checks(nodes);
    if (then) then(nodes);
  };
  try {
    JobOutcome outcome = drive(store, starter, plan, recording.around(events));
    recording.end(recorder, as_run(outcome));
    return outcome;
  } catch (const Error& error) {
    recording.gave_up(recorder, error);
    throw;
  }
}

}  // namespace mlenv::job
