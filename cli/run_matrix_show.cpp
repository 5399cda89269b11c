#include "cli/run_matrix_show.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/printable.hpp"
#include "base/process.hpp"
#include "base/utf8.hpp"
#include "cli/progress_detail.hpp"
#include "cli/run_record.hpp"
#include "recipes/text.hpp"
#include "runner/job/job_recording.hpp"
#include "runner/local/life.hpp"
#include "runner/record/record_files.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {
namespace {

using matrix::MatrixRecord;
using matrix::Metric;
using matrix::Variation;

/// Columns of metrics that a table has room for; mlenv.matrix/1 has all.
constexpr std::size_t kMostMetrics = 8;

std::vector<std::string> metric_names(const MatrixRecord& record) {
  std::vector<std::string> names;
  for (const Variation& variation : record.variations) {
    for (const Metric& one : variation.metrics) {
      if (names.size() == kMostMetrics) return names;
      if (std::find(names.begin(), names.end(), one.name) == names.end()) names.push_back(one.name);
    }
  }
  return names;
}

std::string metric_named(const Variation& variation, const std::string& name) {
  for (const Metric& one : variation.metrics) {
    if (one.name == name) return metric_text(one);
  }
  return {};
}

using Row = std::vector<std::string>;

Row header(const MatrixRecord& record, const std::vector<std::string>& metrics) {
  Row row = {"#"};
  for (const RecordedVariable& one : record.variations.front().values) row.push_back(one.name);
  row.insert(row.end(), {"STATE", "TOOK", "RUN"});
  for (const std::string& name : metrics) row.push_back(printable(name));
  return row;
}

Row variation_row(const Variation& variation, const std::vector<std::string>& metrics) {
  Row row = {std::to_string(variation.number)};
  for (const RecordedVariable& one : variation.values) {
    row.push_back(printable(one.value.value_or(std::string(kMasked))));
  }
  row.push_back(state_text(variation));
  row.push_back(variation.seconds ? duration_text(*variation.seconds) : "");
  row.push_back(variation.run.value_or(""));
  for (const std::string& name : metrics) row.push_back(metric_named(variation, name));
  return row;
}

/// What came of it, behind its name: the metrics, or where to look.
std::string result_text(const Variation& variation) {
  constexpr std::size_t kMost = 3;
  if (variation.state == "done") {
    std::vector<std::string> parts;
    for (const Metric& one : variation.metrics) {
      if (parts.size() == kMost) break;
      parts.push_back(one.name + " " + metric_text(one));
    }
    return join(parts, ", ");
  }
  std::string text = variation.state == "failed" || variation.state == "stopped"
                         ? state_text(variation)
                         : "failed: " + state_text(variation);
  if (variation.run) text += fmt::format(": `mlenv logs {}`", *variation.run);
  return text;
}

/// Where a command's own words are. Of a job they are its ranks': of the one that failed first in
/// its last attempt, else of the first one.
fs::path words_folder(const fs::path& run) {
  try {
    const std::optional<std::string> text = read_file_if_exists(run / kRanksFile);
    if (!text) return run;
    const RecordedRanks ranks = parse_ranks(*text, "ranks");
    if (ranks.attempts.empty()) return run;
    const RecordedJobAttempt& last = ranks.attempts.back();
    return job::rank_folder(run, last.number, last.failure ? last.failure->rank.value_or(0) : 0);
  } catch (const Error&) {
    return run;  // it is being written
  }
}

std::string summary(const MatrixRecord& record) {
  std::vector<std::string> parts;
  std::size_t failed = record.variations.size();
  for (const char* state : {"done", "stopped", "waiting", "running"}) {
    const std::size_t count = matrix::count_in(record, state);
    failed -= count;
    if (count > 0) parts.push_back(fmt::format("{} {}", count, state));
  }
  if (failed > 0) parts.push_back(fmt::format("{} failed", failed));
  return join(parts, ", ");
}

}  // namespace

std::string state_text(const Variation& variation) {
  const std::uint64_t code = variation.exit_code.value_or(0);
  if (variation.state == "failed" && code != 0) return fmt::format("failed ({})", code);
  if (variation.state != "killed" || code <= kSignalBase) return variation.state;
  const std::string name = signal_name(static_cast<int>(code - kSignalBase));
  return name.empty() ? variation.state : fmt::format("killed ({})", name);
}

std::vector<std::string> matrix_table(const MatrixRecord& record) {
  const std::vector<std::string> metrics = metric_names(record);
  std::vector<Row> rows = {header(record, metrics)};
  for (const Variation& one : record.variations) rows.push_back(variation_row(one, metrics));
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], utf8_length(row[i]));
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += row[i] + std::string(widths[i] - utf8_length(row[i]), ' ');
    }
    while (line.ends_with(' ')) line.pop_back();
    lines.push_back(std::move(line));
  }
  return lines;
}

MatrixShow::MatrixShow(Progress& progress, const MatrixRecord& record, fs::path runs_folder)
    : progress_(progress),
      record_(record),
      runs_folder_(std::move(runs_folder)),
      all_(progress.begin("matrix " + record.id, record.variations.size(), "done")) {
  progress_.advance(all_, matrix::count_in(record, "done"));
}

MatrixShow::~MatrixShow() { progress_.end(all_, summary(record_)); }

void MatrixShow::began(std::size_t variation) {
  Shown shown;
  shown.activity = progress_.begin(matrix::shown_values(record_.variations[variation]), 0, "");
  shown.since = std::chrono::steady_clock::now();
  running_.insert_or_assign(variation, std::move(shown));
}

void MatrixShow::ended(std::size_t variation) {
  const auto at = running_.find(variation);
  if (at == running_.end()) return;
  const Variation& one = record_.variations[variation];
  if (one.state == "done") progress_.advance(all_, 1);
  progress_.end(at->second.activity, result_text(one) + last_words(variation, at->second));
  running_.erase(at);
}

void MatrixShow::put_back(std::size_t variation, const std::string& why) {
  const auto at = running_.find(variation);
  if (at == running_.end()) return;
  progress_.end(at->second.activity, why);
  running_.erase(at);
}

std::string MatrixShow::last_words(std::size_t variation, Shown& shown) const {
  constexpr std::uint64_t kMostRead = std::uint64_t{4} << 20U;
  constexpr std::size_t kMostShown = 160;
  const Variation& one = record_.variations[variation];
  if (one.state != "failed" || !one.run) return {};
  const fs::path folder = words_folder(runs_folder_ / *one.run);
  std::uint64_t size = 0;
  for (const fs::path& file : list_folder(log_folder(folder))) size += mlenv::file_size(file);
  if (shown.log_of != folder) shown.log.reset();
  if (size <= kMostRead) read_log(variation, shown);
  std::string text = shown.last_line;
  if (text.size() > kMostShown) text = "…" + text.substr(text.size() - kMostShown);
  return text.empty() ? "" : ": " + text;
}

void MatrixShow::read_log(std::size_t variation, Shown& shown) const {
  const std::optional<std::string>& run = record_.variations[variation].run;
  if (!shown.log && run) {
    shown.log_of = words_folder(runs_folder_ / *run);
    shown.log.emplace(log_folder(shown.log_of));
  }
  if (!shown.log) return;
  while (const std::optional<std::string> text = shown.log->next()) {
    const std::optional<LogLine> line = parse_log_line(*text);
    if (line && !trim(line->text).empty()) shown.last_line = trim(line->text);
  }
}

void MatrixShow::refresh() {
  if (!shows_details(progress_)) return;
  for (auto& [variation, shown] : running_) {
    read_log(variation, shown);
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - shown.since;
    show_detail(progress_, shown.activity,
                fmt::format("{}  {}", duration_text(since.count()), shown.last_line));
  }
  const std::size_t ended = record_.variations.size() - matrix::count_in(record_, "waiting") -
                            matrix::count_in(record_, "running") -
                            matrix::count_in(record_, "done");
  if (ended > 0) show_detail(progress_, all_, fmt::format("{} not", ended));
  progress_.advance(all_, 0);
}

}  // namespace mlenv::cli
