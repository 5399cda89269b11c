#include "runner/node/rank_run.hpp"

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/control.hpp"
#include "runner/local/run_names.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

/// What a run needs to be taken down, beyond its grace.
constexpr std::chrono::seconds kTakedownPatience{5};
constexpr std::size_t kMostRecord = std::size_t{4} << 20;

std::string remark(const std::string& text) {
  const std::string time = utc_text(std::chrono::system_clock::now());
  std::string line = render_log_line({time, LogStream::remark, true, text});
  if (line.ends_with('\n')) line.pop_back();  // as the other lines that are told
  return line;
}

/// Empty where it cannot be read.
std::string record_text(const fs::path& runs, const std::string& id) {
  try {
    RunRecord record = RunRecords{runs}.read(id);
    std::string text = render_run(record);
    if (text.size() <= kMostRecord) return text;
    record.facts.reset();
    text = render_run(record);
    return text.size() <= kMostRecord ? text : "";
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

RankRun::RankRun(std::uint64_t rank, const DetachedRun& run)
    : rank_(rank), runs_(runs_folder(run.store)), run_(run) {}

fs::path RankRun::log() const {
  return run_.id().empty() ? fs::path{} : log_folder(runs_ / run_.id());
}

void RankRun::hear() {
  if (over_) return;
  over_ = !run_.hear();
  if (!lines_ && !run_.id().empty()) lines_.emplace(log());
  if (!over_ && run_.started() && stop_waits_) ask_to_stop();
}

void RankRun::tell(Channel& channel) {
  if (told_end_) return;
  if (run_.started() && !std::exchange(told_start_, true)) {
    channel.say(RankStarted{rank_, run_.id()});
  }
  tell_use(channel);
  // What it wrote is all there when it is over: so that is known before the log is read.
  const bool over = over_;
  const bool ended = tell_lines(channel) && over;
  tell_loss(channel, ended);
  if (!ended) return;
  channel.say(end());
  told_end_ = true;
}

void RankRun::tell_use(Channel& channel) {
  if (over_ || !told_start_ || !channel.has_room()) return;
  if (!use_) use_.emplace(runs_ / run_.id(), run_.id());
  if (const std::optional<RankUse> use = use_->now()) channel.say(RankUsed{rank_, *use});
}

/// False: there may be more.
bool RankRun::tell_lines(Channel& channel) {
  while (lines_) {
    if (!channel.has_room()) return false;
    const std::optional<std::string> line = lines_->next();
    if (const std::uint64_t dropped = lines_->take_dropped()) {
      channel.say(RankLine{
          rank_, remark(fmt::format("{} bytes of output before this are no longer kept on the node",
                                    dropped))});
    }
    if (!line) return true;
    channel.say(RankLine{rank_, *line});
  }
  return true;
}

/// What a full disk did not take: that it began, at once, since the log cannot say so; how much it
/// was, where that is still so in the end.
void RankRun::tell_loss(Channel& channel, bool ended) {
  const std::uint64_t lost = run_.lost_output();
  if (lost == 0) return;
  if (!std::exchange(told_loss_, true)) {
    channel.say(RankLine{rank_, remark(fmt::format("output of rank {} finds no room on the disk of "
                                                   "`{}` and is lost",
                                                   rank_, host_name()))});
  }
  if (ended) {
    channel.say(RankLine{
        rank_,
        remark(fmt::format("{} bytes of output found no room on the disk and are lost", lost))});
  }
}

RankEnded RankRun::end() const {
  RankEnded ended{rank_, 0, std::nullopt, false, std::nullopt, "", ended_by_node_};
  if (!run_.id().empty()) ended.record = record_text(runs_, run_.id());
  if (const std::optional<RunOutcome>& outcome = run_.outcome()) {
    ended.exit_code = static_cast<std::uint64_t>(outcome->exit.code);
    if (outcome->exit.signalled) ended.signal = ended.exit_code - kSignalBase;
    ended.out_of_memory = outcome->out_of_memory;
    return ended;
  }
  ended.exit_code = kOwnFailureStatus;
  ended.failure = run_.failure() ? RunFailure{run_.failure()->code(), run_.failure()->what()}
                                 : RunFailure{"run-failed", "the rank's supervisor was killed"};
  return ended;
}

void RankRun::signal(int number) {
  if (!over_) run_.signal(number);
}

void RankRun::stop(std::chrono::milliseconds grace) {
  if (over_) return;
  const Clock::time_point last = Clock::now() + grace + kTakedownPatience;
  if (!kill_at_ || last < *kill_at_) kill_at_ = last;
  stop_waits_ = grace;
  if (run_.started()) ask_to_stop();
}

void RankRun::ask_to_stop() {
  const StopRequest request{static_cast<std::uint64_t>(stop_waits_->count())};
  stop_waits_.reset();
  try {
    stopping_ = connect_to_run(runs_ / run_.id(), run_.id());
    (void)send_packet(stopping_.get(), render_stop(request));
  } catch (const Error& error) {
    // One that has just ended needs none.
    if (error.code() != "run-ended") kill();
  }
}

void RankRun::blame(const std::string& why) {
  if (!over_ && ended_by_node_.empty()) ended_by_node_ = why;
}

void RankRun::tick() {
  if (!over_ && kill_at_ && Clock::now() >= *kill_at_) kill();
}

void RankRun::kill() {
  if (!over_) run_.kill();
}

}  // namespace mlenv::job
