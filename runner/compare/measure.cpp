#include "runner/compare/measure.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "runner/compare/first_starts.hpp"
#include "runner/compare/rounds.hpp"
#include "runner/compare/schedule.hpp"
#include "runner/compare/tools_server.hpp"

namespace mlenv::compare {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kNoTime = "no time left";

milliseconds milliseconds_of(double seconds) {
  constexpr double kMilli = 1000;
  return milliseconds(static_cast<std::int64_t>(std::ceil(std::max(seconds, 0.0) * kMilli)));
}

/// Some rows follow from digests and other figures.
bool is_probed(std::string_view row) {
  const std::vector<ProbeSpec>& probes = probe_specs();
  return std::any_of(probes.begin(), probes.end(), [&](const ProbeSpec& probe) {
    return std::find(probe.rows.begin(), probe.rows.end(), row) != probe.rows.end();
  });
}

class Measurement {
 public:
  Measurement(const MeasureOptions& options, const Bench& bench, StopSignals& signals,
              Progress& progress)
      : options_(options), bench_(bench), signals_(signals), progress_(progress) {
    for (const RowSpec& spec : row_specs()) {
      if (is_probed(spec.id) && is_asked_for(spec.id)) {
        found_.rows.push_back(row_of(spec));
      }
    }
  }

  Measured run() {
    prepare();
    const double gone = seconds_since(begun_);
    budget_ = options_.budget_seconds;
    if (options_.total_seconds > 0) {
      budget_ = std::min(budget_, options_.total_seconds - options_.gone_seconds - gone);
    }
    begun_ = steady_clock::now();
    if (signals_.came() == 0) go_through();
    found_.signal = signals_.came();
    explain_gaps();
    found_.seconds = seconds_since(begun_);
    return std::move(found_);
  }

 private:
  static double seconds_since(steady_clock::time_point begun) {
    return std::chrono::duration<double>(steady_clock::now() - begun).count();
  }
  double left() const { return budget_ - seconds_since(begun_); }

  Cell& cell_of(std::string_view row, std::string_view side) {
    const auto found = std::find_if(found_.rows.begin(), found_.rows.end(),
                                    [&](const RowResult& one) { return one.id == row; });
    for (Cell& cell : found->sides) {
      if (cell.side == side) return cell;
    }
    Cell cell;
    cell.side = side;
    return found->sides.emplace_back(std::move(cell));
  }
  bool is_asked_for(std::string_view row) const { return is_measured_for(row, options_.rows); }

  /// Each side is started once, which is its warm-up, and tells whether it is there.
  void prepare() {
    std::size_t waiting = options_.sides.size();
    for (const std::string& id : options_.sides) {
      const SideSpec& spec = *find_side_spec(id);
      SideResult result;
      result.id = id;
      result.title = spec.title;
      if (const auto own = options_.side_options.find(id); own != options_.side_options.end()) {
        result.options = own->second;
      }
      const auto absent = options_.absent.find(id);
      if (absent != options_.absent.end()) {
        result.why = absent->second;
      } else if (signals_.came() == 0) {
        // Each has its share, and what those before it left over.
        const double share =
            (options_.preparing_seconds - seconds_since(begun_)) / static_cast<double>(waiting);
        Side side;
        side.active = {&spec, result.options};
        try_side(std::move(side), share, result);
      }
      --waiting;
      found_.sides.push_back(std::move(result));
    }
    if (bench_.port == 0) return;
    if (auto server = start_server(bench_, signals_)) server_.emplace(std::move(*server));
  }

  void try_side(Side side, double seconds, SideResult& result) {
    const Activity activity(progress_, "trying " + result.title);
    const steady_clock::time_point until = steady_clock::now() + milliseconds_of(seconds);
    const std::string why = try_start(side, Which::image, until);
    if (!why.empty()) {
      result.why = why;
      return;
    }
    // The first start may have brought the image there: a second one tells what it costs.
    const steady_clock::time_point begun = steady_clock::now();
    (void)try_start(side, Which::image, until);
    side.start = std::chrono::duration<double>(steady_clock::now() - begun).count();
    side.tools = options_.tools_why.empty() && try_start(side, Which::tools, until).empty();
    sides_.push_back(std::move(side));
  }

  std::string try_start(const Side& side, Which which, steady_clock::time_point until) {
    constexpr milliseconds kLeast{1000};
    const auto deadline =
        std::max(std::chrono::duration_cast<milliseconds>(until - steady_clock::now()), kLeast);
    try {
      const Command command =
          command_on(bench_, side.active, {which, {"sh", "-c", "echo"}, true, false});
      const Launched launched = launch(minder_of(bench_, side.active), command, deadline, signals_);
      if (launched.stopped) return "interrupted";
      return launched.exit.code == 0 && !launched.timed_out ? "" : why_of(launched, deadline);
    } catch (const Error& error) {
      return why_of(error);
    }
  }

  /// Of the person's command nothing is known: it gets its chance however little time there is.
  double guess(const ProbeSpec& probe) const {
    if (probe.kind != ProbeKind::command) return probe.seconds;
    constexpr double kShare = 4;
    return std::min(probe.seconds, budget_ / kShare / static_cast<double>(sides_.size()));
  }

  /// The most important stands first: what nobody would do without, then what fast sides take part
  /// in, then the rest of the slow ones.
  void plan() {
    const auto plan_all = [&](bool basic, bool slow) {
      for (const ProbeSpec& probe : probe_specs()) {
        if (is_basic(probe) == basic) plan_rounds(probe, slow);
      }
    };
    plan_all(true, false);
    plan_all(true, true);
    plan_all(false, false);
    plan_all(false, true);
  }

  void plan_rounds(const ProbeSpec& probe, bool slow) {
    PlannedProbe planned;
    planned.wanted = options_.quick ? probe.wanted_quick : probe.wanted;
    planned.waits = is_cold(probe);
    const bool left_out = planned.wanted == 0;
    if (slow && options_.quick) planned.wanted = std::min<std::uint64_t>(planned.wanted, 1);
    // Whether it is there was tried with several starts, which read what a slow one reads.
    planned.warm_up = planned.wanted > 1 && !slow && needs_warm_up(probe) ? 1 : 0;
    planned.wanted += planned.warm_up;
    Rounds rounds;
    rounds.probe = &probe;
    rounds.warms_up = planned.warm_up > 0;
    for (const Side& side : sides_) {
      if (is_slow(side) != slow) continue;
      const Ready ready{side.tools, options_.tools_why, server_.has_value()};
      ProbePart part = part_on(probe, bench_, side.active, ready, options_.rows);
      if (left_out) part = without(part.probe.rows, "not with --quick");
      for (const auto& [row, why] : part.whys) cell_of(row, side.active.spec->id).why = why;
      if (part.probe.rows.empty()) continue;
      planned.guessed.push_back(guess(part.probe) + side.start);
      rounds.takers.push_back({&side, std::move(part.probe)});
      rounds.sides.emplace_back(side.active.spec->id);
    }
    planned_.push_back(std::move(planned));
    rounds_.push_back(std::move(rounds));
  }

  static ProbePart without(const std::vector<std::string_view>& rows, const char* why) {
    ProbePart none;
    for (const std::string_view row : rows) none.whys[std::string(row)] = why;
    return none;
  }

  void go_through() {
    plan();
    std::uint64_t rounds = 0;
    for (const PlannedProbe& one : planned_) rounds += one.guessed.empty() ? 0 : one.wanted;
    Activity activity(progress_, "measuring", rounds, "rounds");
    // The cold ones come last: what they put out of memory is that of the warm ones, too.
    while (const auto next = next_probe(planned_, left() - kept_for_cold())) {
      if (!round(*next)) return;
      activity.advance(1);
    }
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      planned_[i].waits = !is_cold(*rounds_[i].probe);
    }
    while (const auto next = next_probe(planned_, left())) {
      if (!round(*next)) return;
      activity.advance(1);
    }
  }

  /// Time for as many cold starts as a claim needs, but a small part of all alone.
  double kept_for_cold() const {
    constexpr double kShare = 0.15;
    double seconds = 0;
    for (const PlannedProbe& one : planned_) {
      if (!one.waits) continue;
      for (const double guess : one.guessed) {
        seconds += guess * static_cast<double>(std::min(kFewestRounds, one.wanted));
      }
    }
    return std::min(seconds, kShare * budget_);
  }

  /// false: a signal came.
  bool round(std::size_t number) {
    PlannedProbe& planned = planned_[number];
    std::vector<Rounds::Taker>& takers = rounds_[number].takers;
    std::vector<const Side*> failed;
    std::optional<Activity> first;  // who reads lines of a log sees how far it is
    if (planned.done == 0) {
      std::string sides;
      for (const std::string& one : rounds_[number].sides) sides += " " + one;
      first.emplace(progress_,
                    fmt::format("first round of {}:{}", rounds_[number].probe->id, sides));
    }
    std::size_t waiting = takers.size();
    for (const std::size_t at : turn(takers.size(), planned.done)) {
      auto& [side, part, starts] = takers[at];
      const milliseconds most = deadline(part, planned.guessed[at], waiting--);
      // One that took the time of others is not what they failed by.
      if (left() <= 0 || (planned.done > 0 && planned.guessed[at] > left())) continue;
      const Found found = run_probe(bench_, part, side->active, most, signals_);
      if (found.stopped || signals_.came() != 0) return false;
      planned.guessed[at] = std::max(found.seconds, planned.guessed[at] / 2);
      if (planned.done == 0) planned.guessed[at] = found.seconds;
      const bool gave_nothing = found.values.empty() && found.texts.empty();
      if (gave_nothing || found.timed_out) failed.push_back(side);
      take(part, *side, found, rounds_[number].warms_up && starts == 0);
      ++starts;
    }
    ++planned.done;
    for (const Side* const side : failed) {
      const auto at = std::find_if(takers.begin(), takers.end(),
                                   [&](const Rounds::Taker& one) { return one.side == side; }) -
                      takers.begin();
      takers.erase(takers.begin() + at);
      planned.guessed.erase(planned.guessed.begin() + at);
    }
    return true;
  }

  /// Of what is left each of the sides that still wait for their start in this round has a share.
  milliseconds deadline(const ProbeSpec& probe, double guessed, std::size_t waiting) const {
    constexpr double kFactor = 10;
    constexpr double kLeast = 20;
    double within = std::max(kFactor * guessed, kLeast);
    double free = left();
    if (probe.kind == ProbeKind::command) {
      free -= kept_for_others();
      within = free;
    }
    const double share = free / static_cast<double>(std::max<std::size_t>(waiting, 1));
    return milliseconds_of(std::max(std::min(within, share), 1.0));
  }

  /// Whatever the person's command takes, the other rows have their first round.
  double kept_for_others() const {
    constexpr double kShare = 0.25;
    double seconds = 0;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (planned_[i].done > 0 || rounds_[i].probe->kind == ProbeKind::command) continue;
      for (const double guess : planned_[i].guessed) seconds += guess;
    }
    return std::min(seconds, kShare * budget_);
  }

  /// Said of what has its first start alone.
  void tell_warm_up() {
    for (RowResult& row : found_.rows) {
      for (Cell& cell : row.sides) {
        if (!first_starts_.are_all_of(row.id, cell)) continue;
        const std::string before = cell.note ? *cell.note + "; " : "";
        cell.note = before + "one start, not warmed up";
      }
    }
  }

  void take(const ProbeSpec& probe, const Side& side, const Found& found, bool is_first_start) {
    for (const std::string_view row : probe.rows) {
      if (!is_asked_for(row)) continue;
      const std::string id(row);
      Cell& cell = cell_of(id, side.active.spec->id);
      if (found.device) cell.device = found.device;
      if (const auto value = found.values.find(id); value != found.values.end()) {
        first_starts_.add(id, cell, value->second, is_first_start);
      }
      if (const auto text = found.texts.find(id); text != found.texts.end()) {
        // Of a figure it is what it was measured with.
        (found.values.contains(id) ? cell.note : cell.text) = text->second;
        if (cell.text) cell.text_session = 0;
      }
      const auto why = found.whys.find(id);
      if (why != found.whys.end() && cell.samples.empty() && !cell.text) cell.why = why->second;
      if (why != found.whys.end() && !cell.samples.empty()) {
        cell.note = "then no more: " + why->second;
      }
    }
  }

  /// Every row says something of every side.
  void explain_gaps() {
    tell_warm_up();
    for (RowResult& row : found_.rows) {
      for (const SideResult& side : found_.sides) {
        Cell& cell = cell_of(row.id, side.id);
        if (!cell.samples.empty() || cell.text || cell.why) continue;
        cell.why = side.why ? *side.why : (found_.signal != 0 ? "interrupted" : kNoTime);
      }
      std::vector<Cell> ordered;
      for (const SideResult& side : found_.sides) ordered.push_back(cell_of(row.id, side.id));
      row.sides = std::move(ordered);
    }
    const bool has_command = !bench_.command.empty();
    std::erase_if(found_.rows, [&](const RowResult& row) {
      return !has_command && row.id.starts_with("command.");
    });
  }

  const MeasureOptions& options_;
  const Bench& bench_;
  StopSignals& signals_;
  Progress& progress_;
  Measured found_;
  std::vector<Side> sides_;
  std::vector<PlannedProbe> planned_;
  std::vector<Rounds> rounds_;  ///< of planned_
  FirstStarts first_starts_;
  std::optional<Started> server_;
  double budget_ = 0;
  steady_clock::time_point begun_ = steady_clock::now();
};

}  // namespace

Measured measure(const MeasureOptions& options, const Bench& bench, StopSignals& signals,
                 Progress& progress) {
  return Measurement(options, bench, signals, progress).run();
}

}  // namespace mlenv::compare
