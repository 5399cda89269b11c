#include "runner/compare/measure.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "runner/compare/output.hpp"
#include "runner/compare/schedule.hpp"
#include "runner/compare/tools_server.hpp"

namespace mlenv::compare {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kPreparation{600'000};
constexpr const char* kNoTime = "no time left";

struct Side {
  ActiveSide active;
  bool tools = false;  ///< the tools' image starts there
  double start = 0;    ///< seconds of one
};

/// Some rows follow from digests and other figures.
bool is_probed(std::string_view row) {
  const std::vector<ProbeSpec>& probes = probe_specs();
  return std::any_of(probes.begin(), probes.end(), [&](const ProbeSpec& probe) {
    return std::find(probe.rows.begin(), probe.rows.end(), row) != probe.rows.end();
  });
}

class Measurement {
 public:
  Measurement(const MeasureOptions& options, const Bench& bench, Progress& progress)
      : options_(options), bench_(bench), progress_(progress) {
    for (const RowSpec& spec : row_specs()) {
      if (is_probed(spec.id) && is_asked(spec.id, options.rows)) {
        found_.rows.push_back(row_of(spec));
      }
    }
  }

  Measured run() {
    prepare();
    begun_ = Clock::now();
    if (signals_.came() == 0) go_through();
    found_.signal = signals_.came();
    explain_gaps();
    found_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    return std::move(found_);
  }

 private:
  double left() const {
    const double gone = std::chrono::duration<double>(Clock::now() - begun_).count();
    return options_.budget_seconds - gone;
  }

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
  bool is_asked_for(std::string_view row) const { return is_asked(row, options_.rows); }

  /// Each side is started once, which is its warm-up, and tells whether it is there.
  void prepare() {
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
        try_side({{&spec, result.options}}, result);
      }
      found_.sides.push_back(std::move(result));
    }
    if (bench_.port == 0) return;
    if (auto server = start_server(bench_, signals_)) server_.emplace(std::move(*server));
  }

  void try_side(Side side, SideResult& result) {
    const Activity activity(progress_, "trying " + result.title);
    const std::string why = try_start(side, Which::image);
    if (!why.empty()) {
      result.why = why;
      return;
    }
    // The first start may have brought the image there: a second one tells what it costs.
    const Clock::time_point begun = Clock::now();
    (void)try_start(side, Which::image);
    side.start = std::chrono::duration<double>(Clock::now() - begun).count();
    side.tools = options_.tools_why.empty() && try_start(side, Which::tools).empty();
    sides_.push_back(std::move(side));
  }

  std::string try_start(const Side& side, Which which) {
    try {
      const Command command =
          command_on(bench_, side.active, {which, {"sh", "-c", "echo"}, true, false});
      const Launched launched = launch(command, kPreparation, signals_);
      if (launched.stopped) return "interrupted";
      return launched.exit.code == 0 && !launched.timed_out ? "" : why_of(launched, kPreparation);
    } catch (const Error& error) {
      return why_of(error);
    }
  }

  bool needs_tools(const ProbeSpec& probe) const {
    return probe.kind == ProbeKind::tool || (probe.kind == ProbeKind::script && !bench_.has_python);
  }

  /// Why a probe cannot be on that side; empty: it can.
  std::string hindrance(const ProbeSpec& probe, const Side& side) const {
    if (needs_tools(probe) && !side.tools) {
      return options_.tools_why.empty() ? "the image with the tools does not start there"
                                        : options_.tools_why;
    }
    const bool trains = probe.kind == ProbeKind::training || probe.kind == ProbeKind::cold_training;
    if (trains && !bench_.has_python) return "the image has no Python";
    if (probe.argv.size() > 1 && probe.argv.front() == "iperf3" && !server_) {
      return "iperf3 did not start on this host";
    }
    return "";
  }

  /// Of the person's command nothing is known: it gets its chance however little time there is.
  double guess(const ProbeSpec& probe) const {
    if (probe.kind != ProbeKind::command) return probe.seconds;
    constexpr double kShare = 4;
    return std::min(probe.seconds,
                    options_.budget_seconds / kShare / static_cast<double>(sides_.size()));
  }

  void plan() {
    for (const ProbeSpec& probe : probe_specs()) {
      PlannedProbe planned;
      planned.wanted = options_.quick ? probe.wanted_quick : probe.wanted;
      const bool asked = std::any_of(probe.rows.begin(), probe.rows.end(),
                                     [&](std::string_view row) { return is_asked_for(row); });
      const bool has_command = probe.kind != ProbeKind::command || !bench_.command.empty();
      std::vector<const Side*>& takes = takes_.emplace_back();
      for (const Side& side : sides_) {
        if (!asked || !has_command) continue;
        const std::string why = hindrance(probe, side);
        if (why.empty()) {
          takes.push_back(&side);
          planned.guessed.push_back(guess(probe) + side.start);
        } else {
          give_up(probe, side, why);
        }
      }
      planned_.push_back(std::move(planned));
    }
  }

  void go_through() {
    plan();
    std::uint64_t rounds = 0;
    for (const PlannedProbe& one : planned_) rounds += one.guessed.empty() ? 0 : one.wanted;
    Activity activity(progress_, "measuring", rounds, "rounds");
    while (const auto next = next_probe(planned_, left())) {
      if (!round(*next)) return;
      activity.advance(1);
    }
  }

  /// false: a signal came.
  bool round(std::size_t number) {
    const ProbeSpec& probe = probe_specs()[number];
    PlannedProbe& planned = planned_[number];
    std::vector<const Side*>& sides = takes_[number];
    std::vector<const Side*> failed;
    for (const std::size_t at : turn(sides.size(), planned.done)) {
      const Side& side = *sides[at];
      const Found found =
          run_probe(bench_, probe, side.active, deadline(probe, planned.guessed[at]), signals_);
      if (found.stopped || signals_.came() != 0) return false;
      planned.guessed[at] = std::max(found.seconds, planned.guessed[at] / 2);
      if (planned.done == 0) planned.guessed[at] = found.seconds;
      if (found.values.empty() && found.texts.empty()) failed.push_back(&side);
      take(probe, side, found);
    }
    ++planned.done;
    for (const Side* const side : failed) {
      const auto at = std::find(sides.begin(), sides.end(), side) - sides.begin();
      sides.erase(sides.begin() + at);
      planned.guessed.erase(planned.guessed.begin() + at);
    }
    return true;
  }

  milliseconds deadline(const ProbeSpec& probe, double guessed) const {
    constexpr double kFactor = 10;
    constexpr double kLeast = 20;
    constexpr double kMilli = 1000;
    const double within =
        probe.kind == ProbeKind::command ? left() : std::max(kFactor * guessed, kLeast);
    return milliseconds(
        static_cast<std::int64_t>(std::ceil(std::min(within, std::max(left(), 1.0)) * kMilli)));
  }

  void take(const ProbeSpec& probe, const Side& side, const Found& found) {
    for (const std::string_view row : probe.rows) {
      if (!is_asked_for(row)) continue;
      const std::string id(row);
      Cell& cell = cell_of(id, side.active.spec->id);
      if (const auto value = found.values.find(id); value != found.values.end()) {
        cell.samples.push_back({value->second, 0});
      }
      if (const auto text = found.texts.find(id); text != found.texts.end()) {
        // Of a figure it is what it was measured with.
        (found.values.contains(id) ? cell.note : cell.text) = text->second;
      }
      const auto why = found.whys.find(id);
      if (why != found.whys.end() && cell.samples.empty() && !cell.text) cell.why = why->second;
      if (why != found.whys.end() && !cell.samples.empty()) {
        cell.note = "then no more: " + why->second;
      }
    }
  }

  void give_up(const ProbeSpec& probe, const Side& side, const std::string& why) {
    for (const std::string_view row : probe.rows) {
      if (is_asked_for(row)) cell_of(row, side.active.spec->id).why = why;
    }
  }

  /// Every row says something of every side.
  void explain_gaps() {
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
  Progress& progress_;
  StopSignals signals_;
  Measured found_;
  std::vector<Side> sides_;
  std::vector<PlannedProbe> planned_;            ///< of probe_specs()
  std::vector<std::vector<const Side*>> takes_;  ///< who takes part, by probe
  std::optional<Started> server_;
  Clock::time_point begun_ = Clock::now();
};

}  // namespace

Measured measure(const MeasureOptions& options, const Bench& bench, Progress& progress) {
  return Measurement(options, bench, progress).run();
}

}  // namespace mlenv::compare
