// `mlenv watch`: what a run uses while it goes on, and at the end whether that was all it could.
#include "cli/watch.hpp"

#include <unistd.h>
#include <chrono>
#include <deque>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/standard_output.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_life.hpp"
#include "cli/running.hpp"
#include "cli/slurm_jobs.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "cli/watch_terminal.hpp"
#include "cli/watch_view.hpp"
#include "recipes/text.hpp"
#include "runner/watch/watch_record.hpp"
#include "runner/watch/watcher.hpp"

namespace mlenv::cli {
namespace {

using nlohmann::json;
using std::chrono::steady_clock;
using watch::Answer;
using watch::Sample;

struct WatchWords {
  std::string run;
  std::string interval = "1s";
  std::string length;
};

struct Times {
  std::chrono::milliseconds interval{};
  std::optional<std::chrono::milliseconds> length;
};

Times watch_times(const WatchWords& options) {
  constexpr std::chrono::milliseconds kShortest{100};
  constexpr std::chrono::hours kLongest{1};
  Times times;
  times.interval = duration_of("--interval", options.interval);
  if (times.interval < kShortest || times.interval > kLongest) {
    throw usage_error("usage", "`--interval {}` is not between 0.1 seconds and an hour",
                      options.interval)
        .hint("`--interval 1s`");
  }
  if (!options.length.empty()) times.length = duration_of("--for", options.length);
  return times;
}

bool is_queued(const RunRecords& records, const std::string& id) {
  return records.read_brief(id).state == "queued";
}

/// The newest that goes on, where none is named.
std::string run_named(Ui& ui, const RunRecords& records, const std::string& word) {
  if (!word.empty()) {
    std::string id = begun_run(ui, records, word, false);
    if (!records.goes_on(id) && job_in_slurm(records, id)) {
      throw refusal("run-queued", "job `{}` waits in Slurm's queue to go on", id)
          .hint(fmt::format("`mlenv logs -f {0}` and `mlenv wait {0}` wait, too", id));
    }
    if (is_queued(records, id)) {
      throw refusal("run-queued", "run `{}` waits for others, and has not begun", id)
          .hint("`mlenv wait` waits for it");
    }
    return id;
  }
  const std::vector<std::string> ids = records.ids();
  const auto running = std::find_if(ids.rbegin(), ids.rend(), [&](const std::string& id) {
    return records.goes_on(id) && !is_queued(records, id);
  });
  if (running != ids.rend()) return *running;
  throw refusal("run-ended", "no run goes on")
      .hint("`mlenv watch last` tells of the newest that has ended");
}

double seconds(steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

std::string span_text(double seconds) {
  constexpr std::uint64_t kMinute = 60;
  constexpr std::uint64_t kHour = 3600;
  const auto whole = static_cast<std::uint64_t>(std::max(seconds, 0.0));
  if (whole < kMinute) return fmt::format("{} s", whole);
  if (whole < kHour) return fmt::format("{} min {} s", whole / kMinute, whole % kMinute);
  return fmt::format("{} h {} min", whole / kHour, whole % kHour / kMinute);
}

/// A line of JSON for whoever follows.
void answer_json(const Ui& ui, const char* kind, const RunRecord& run, const std::string& text) {
  json value = json::parse(text);
  value["kind"] = kind;
  value["run"] = run.start.id;
  value["name"] = run.start.name ? json(*run.start.name) : json();
  value["time"] = utc_text(std::chrono::system_clock::now());
  if (std::string_view(kind) == "answer") value["state"] = run.state;
  ui.answer(canonical(value));
}

void give_answer(const Ui& ui, const RunRecord& run, const Answer& answer) {
  if (ui.options.json) return answer_json(ui, "answer", run, watch::render_answer(answer));
  ui.answer_lines(watch_answer_text(answer));
  if (!answer.figures || answer.figures->seconds <= 0) return;
  std::string window = fmt::format("judged: {:.0f} s", answer.figures->seconds);
  if (answer.figures->from_seconds > 0) {
    window += fmt::format("; not the {:.0f} s before that, in which the use was another",
                          answer.figures->from_seconds);
  }
  ui.say(window);
}

/// Of another machine, which shares the store, nothing can be seen but the record.
void require_here(const RunStart& start) {
  const auto boot = read_file_if_exists("/proc/sys/kernel/random/boot_id");
  if (!boot || trim(*boot) == start.boot_id) return;
  throw failure("run-unseen", "the processes of run `{}` cannot be seen from here", start.id)
      .because(fmt::format("it runs on `{}`", printable(start.host)))
      .hint("watch it there");
}

/// One run while it is watched.
class Session {
 public:
  Session(Ui& ui, const RunRecords& records, const std::string& id, const Times& times)
      : ui_(ui),
        records_(records),
        run_(records.read_brief(id)),
        times_(times),
        watcher_([folder = records.folder_of(id), id] { return watch::anchor_of_run(folder, id); },
                 run_.start.devices),
        terminal_(std::in_place, is_live(ui)),
        began_(steady_clock::now()),
        spoke_(began_) {
    setting_.has_gpus = watch::has_gpus(run_.start.devices);
  }

  /// To its end, or until whoever watches has seen enough; the terminal is as it was before.
  void watch() {
    follow();
    terminal_.reset();
  }

  void conclude() {
    const std::string id = run_.start.id;
    run_ = records_.read_brief(id);
    const fs::path folder = records_.folder_of(id);
    if (samples_.empty() && run_.state != "running") {
      return give_answer(ui_, run_, watch::answer_of_ended(folder, records_.read(id)));
    }
    const Answer answer = current();
    watch::keep_answer(folder, answer);
    give_answer(ui_, run_, answer);
  }

 private:
  static bool is_live(const Ui& ui) {
    const std::string& mode = ui.options.progress;
    if (ui.options.quiet || ui.options.json || ::isatty(STDERR_FILENO) != 1) return false;
    return mode == "tty" || (mode == "auto" && ::isatty(STDIN_FILENO) == 1);
  }

  void follow() {
    // Several from one figure to the next, and one a second: its end, or ours, may come.
    const auto looks = static_cast<int>(std::max<std::int64_t>(
        4, std::chrono::ceil<std::chrono::seconds>(times_.interval).count()));
    const auto step =
        std::max<steady_clock::duration>(times_.interval / looks, std::chrono::milliseconds(25));
    take_sample();
    show();
    steady_clock::time_point next = steady_clock::now() + step;
    for (int steps = 1;; ++steps, next += step) {
      if (!wait_until(next)) break;
      if (!records_.goes_on(run_.start.id) || answer_error() != 0) break;
      if (steps % looks == 0) {
        take_sample();
        show();
      } else {
        watcher_.look();
      }
      if (times_.length && steady_clock::now() - began_ >= *times_.length) break;
      // A machine that slept, or was too busy, is not made up for.
      next = std::max(next, steady_clock::now() - step);
    }
  }

  bool wait_until(steady_clock::time_point when) {
    while (true) {
      switch (terminal_->wait_until(when)) {
        case WatchEvent::leave:
          return false;
        case WatchEvent::resize:
          draw();
          continue;
        case WatchEvent::time:
          return true;
      }
    }
  }

  void take_sample() {
    constexpr std::size_t kMost = 7200;  // two hours at one a second: the answer is about these
    if (std::optional<Sample> sample = watcher_.sample()) {
      if (ui_.options.json) answer_json(ui_, "sample", run_, watch::render_sample(*sample));
      newest_.push_back(*sample);
      trim_newest();
      sample->processes.clear();
      if (samples_.size() == kMost) samples_.erase(samples_.begin());
      samples_.push_back(*std::move(sample));
      setting_.thread_variables = watch::thread_variables_of(watcher_.environment());
    }
  }

  void trim_newest() {
    constexpr double kMinute = 60;
    double covered = 0;
    for (const Sample& one : newest_) covered += one.seconds;
    while (newest_.size() > 1 && covered - newest_.front().seconds >= kMinute) {
      covered -= newest_.front().seconds;
      newest_.pop_front();
    }
  }

  Answer current() const { return watch::answer_of(samples_, setting_); }

  void show() {
    if (terminal_->draws()) return draw();
    constexpr std::chrono::seconds kPause{5};
    const std::string& mode = ui_.options.progress;
    if (ui_.options.json || mode == "none" || newest_.empty()) return;
    if (steady_clock::now() - spoke_ < kPause) return;
    spoke_ = steady_clock::now();
    ui_.say(fmt::format("{:>8}  {}", span_text(seconds(steady_clock::now() - began_)),
                        watch_line(newest_.back())));
  }

  void draw() {
    if (!terminal_->draws()) return;
    const WatchTerminal::Size size = terminal_->size();
    WatchScreen screen;
    screen.title = printable(run_.start.name.value_or(run_.start.id));
    for (const std::string& word : run_.start.argv) screen.title += "  " + printable(word);
    const auto started = parse_utc(run_.start.started);
    const auto age = started ? std::chrono::system_clock::now() - *started
                             : std::chrono::system_clock::duration{};
    screen.state = "running " + span_text(std::chrono::duration<double>(age).count());
    screen.newest = newest_;
    if (!samples_.empty()) screen.so_far = current().findings;
    screen.columns = size.columns;
    screen.rows = size.rows;
    screen.color = ui_.color();
    terminal_->show(watch_screen(screen));
  }

  Ui& ui_;
  const RunRecords& records_;
  RunRecord run_;
  Times times_;
  watch::Watcher watcher_;
  watch::Setting setting_;
  std::vector<Sample> samples_;
  std::deque<Sample> newest_;
  std::optional<WatchTerminal> terminal_;
  steady_clock::time_point began_;
  steady_clock::time_point spoke_;
};

int watch_command(const WatchWords& options, Ui& ui) {
  const Times times = watch_times(options);
  const RunRecords records = run_records();
  const std::string id = run_named(ui, records, options.run);
  if (!records.goes_on(id)) {
    const RunRecord run = records.read(id);
    give_answer(ui, run, watch::answer_of_ended(records.folder_of(id), run));
    return 0;
  }
  require_here(records.read_brief(id).start);
  Session session{ui, records, id, times};
  session.watch();
  session.conclude();
  return 0;
}

}  // namespace

Action declare_watch(CLI::App& app) {
  auto options = std::make_shared<WatchWords>();
  take_word_of(app.add_option("RUN", options->run,
                              "an id, its beginning or end, a name, or `last`; by default the "
                              "newest that goes on"),
               WordKind::run);
  app.add_option("--interval", options->interval, "from one figure to the next; by default 1s")
      ->type_name("DURATION")
      ->default_str("");
  app.add_option("--for", options->length, "leave after so long, with the answer so far")
      ->type_name("DURATION");
  app.footer("example: mlenv watch last");
  return [options](Ui& ui) { return watch_command(*options, ui); };
}

}  // namespace mlenv::cli
