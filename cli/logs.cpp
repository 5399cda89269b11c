#include <unistd.h>
#include <algorithm>
#include <array>
#include <deque>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/duration.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/standard_output.hpp"
#include "cli/command_tree.hpp"
#include "cli/folder_events.hpp"
#include "cli/logs_job.hpp"
#include "cli/running.hpp"
#include "cli/slurm_jobs.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::cli {
namespace {

constexpr int kMostLines = 1000000000;

struct LogsWords {
  std::string run;
  bool follow = false;
  bool timestamps = false;
  std::optional<std::size_t> lines;
  std::string since;
  std::optional<std::uint64_t> rank;
};

/// RFC 3339 text in UTC, as the log has it, so that texts compare as times do.
std::string start_of(const std::string& since) {
  if (since.empty()) return {};
  if (const auto before = parse_duration(since)) {
    return utc_text(std::chrono::system_clock::now() - *before);
  }
  if (const auto when = parse_utc(since)) return utc_text(*when);
  throw usage_error("usage", "`--since {}` is no time", since)
      .hint("write how long ago (`10m`, `2h`), or a time in UTC: `2026-03-01T12:00:00Z`");
}

/// Shows lines of the log as the command wrote them: each stream on ours, byte for byte.
class ShownLog {
 public:
  ShownLog(const LogsWords& options, const Ui& ui) : options_(options), ui_(ui) {}

  void show(std::string_view text) {
    const std::optional<LogLine> line = parse_log_line(text);
    if (!line) return;
    if (ui_.options.json) return show_json(*line);
    if (line->stream == LogStream::remark) {
      flush();
      ui_.say(fmt::format("mlenv: {}", printable(line->text)));
      return;
    }
    const bool is_out = line->stream == LogStream::out;
    bool& begun = begun_.at(is_out ? 0 : 1);
    if (is_out != to_out_) flush();
    to_out_ = is_out;
    if (options_.timestamps && !begun) pending_.append(line->time).push_back(' ');
    pending_.append(line->text);
    if (line->ends) pending_ += '\n';
    begun = !line->ends;
    constexpr std::size_t kEnough = std::size_t{64} << 10;
    if (pending_.size() > kEnough) flush();
  }
  void dropped(std::uint64_t bytes) {
    if (bytes == 0) return;
    flush();
    ui_.say(fmt::format("mlenv: {} of output before this are no longer kept (`--log-size`)",
                        human_bytes(bytes)));
  }
  void flush() {
    if (pending_.empty()) return;
    if (to_out_) {
      write_answer(pending_);
    } else {
      write_all(STDERR_FILENO, as_bytes(pending_));
    }
    pending_.clear();
  }

 private:
  void show_json(const LogLine& line) {
    constexpr std::array<const char*, 3> kNames = {"stdout", "stderr", "mlenv"};
    const nlohmann::json record = {{"schema", "mlenv.log-line/1"},
                                   {"time", line.time},
                                   {"stream", kNames.at(static_cast<std::size_t>(line.stream))},
                                   {"text", line.text},
                                   {"complete", line.ends}};
    // Output need not be UTF-8.
    pending_ += record.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    to_out_ = true;
    flush();
  }

  const LogsWords& options_;
  const Ui& ui_;
  std::array<bool, 2> begun_{};
  bool to_out_ = true;
  std::string pending_;
};

/// The last lines of what there is now; a line in several parts counts once.
std::deque<std::string> last_lines(LogReader& reader, std::size_t most, const std::string& since) {
  std::deque<std::string> kept;
  std::size_t whole = 0;
  const auto ends = [](const std::string& text) {
    const auto line = parse_log_line(text);
    return line && line->ends;
  };
  while (std::optional<std::string> text = reader.next()) {
    if (*text < since) continue;
    if (ends(*text)) ++whole;
    kept.push_back(std::move(*text));
    while (whole > most) {
      if (ends(kept.front())) --whole;
      kept.pop_front();
    }
  }
  return kept;
}

void show_all(const RunRecords& records, const std::string& id, const LogsWords& options,
              const std::string& since, ShownLog& shown) {
  const fs::path folder = log_folder(records.folder_of(id));
  const FolderEvents events{folder};
  LogReader reader{folder};
  // Before the log is read: what a run wrote is all there when it has ended.
  bool goes_on = records.goes_on(id);
  if (options.lines) {
    for (const std::string& text : last_lines(reader, *options.lines, since)) shown.show(text);
    (void)reader.take_dropped();
  }
  while (true) {
    while (const std::optional<std::string> text = reader.next()) {
      shown.dropped(reader.take_dropped());
      if (*text >= since) shown.show(*text);
    }
    shown.flush();
    if (!options.follow || !goes_on || answer_error() != 0) return;
    events.wait();
    goes_on = records.goes_on(id);
  }
}

int logs_command(const LogsWords& options, Ui& ui) {
  const std::string since = start_of(options.since);
  const RunRecords records = run_records();
  const std::string id = begun_run(ui, records, options.run, options.follow);
  if (records.read_brief(id).start.launch) {
    show_job_log(ui, records, id,
                 {options.follow, options.timestamps, options.lines, since, options.rank});
    return 0;
  }
  if (options.rank) {
    throw usage_error("no-rank", "run `{}` has no ranks", id)
        .because("it ran on one machine, without `--nodes`");
  }
  if (!fs::exists(log_folder(records.folder_of(id)))) {
    throw refusal("no-logs", "the output of run `{}` was not kept", id)
        .because("it ran in the foreground, where it wrote to the streams of `mlenv run`")
        .hint("`mlenv run -d` keeps it; or redirect it: `mlenv run … >FILE`");
  }
  ShownLog shown{options, ui};
  show_all(records, id, options, since, shown);
  return 0;
}

}  // namespace

Action declare_logs(CLI::App& app) {
  auto options = std::make_shared<LogsWords>();
  take_word_of(app.add_option("RUN", options->run, "an id, its beginning or end, a name, or `last`")
                   ->required(),
               WordKind::run);
  app.add_flag("-f,--follow", options->follow, "go on until the run ends");
  app.add_flag("-t,--timestamps", options->timestamps, "the time (UTC) before each line");
  app.add_option("-n,--tail", options->lines, "so many lines, the last ones")
      ->check(CLI::Range(0, kMostLines));
  app.add_option("--since", options->since, "what came since then: `10m` ago, or a time")
      ->type_name("TIME");
  app.add_option("--rank", options->rank, "of a run on several nodes: what this rank wrote");
  app.footer("example: mlenv logs -f last");
  return [options](Ui& ui) { return logs_command(*options, ui); };
}

}  // namespace mlenv::cli
