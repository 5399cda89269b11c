// `mlenv reproduce`: a recorded run again, and whether it gives the same bits.
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <memory>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/record_json.hpp"
#include "cli/command_tree.hpp"
#include "cli/reproduce_plan.hpp"
#include "cli/run_recording.hpp"
#include "cli/settings.hpp"
#include "cli/usage.hpp"
#include "runner/facts/probe.hpp"
#include "runner/record/run_records.hpp"
#include "runner/repeat/compare_outputs.hpp"

namespace mlenv::cli {
namespace {

constexpr std::chrono::seconds kCodeDeadline{5};

struct Report {
  std::string run;
  std::optional<std::string> by;  ///< id of the repetition; nothing: it is not recorded
  std::string result;             ///< `same`, `differs`
  std::string code;
  std::uint64_t recorded_exit = 0;
  std::uint64_t found_exit = 0;
  std::vector<ComparedFile> files;
  std::vector<std::string> causes;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("run", self.run);
    visit("by", self.by);
    visit("result", self.result);
    visit("code", self.code);
    visit("recorded_exit", self.recorded_exit);
    visit("found_exit", self.found_exit);
    visit("files", self.files);
    visit("causes", self.causes);
  }
};

/// The answer has standard output to itself: what the run says there goes to standard error.
class OutputAside {
 public:
  OutputAside() : saved_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (saved_) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  OutputAside(const OutputAside&) = delete;
  OutputAside& operator=(const OutputAside&) = delete;
  ~OutputAside() {
    if (saved_) ::dup2(saved_.get(), STDOUT_FILENO);
  }

 private:
  Fd saved_;
};

fs::path written(const Reproduction& plan, const PlacedOutput& output) {
  const fs::path upper = throwaway_folder(plan.run.scratch, output.mount);
  return output.within.empty() ? upper : upper / output.within;
}

std::vector<RecordedOutput> read_written(const Reproduction& plan) {
  std::vector<RecordedOutput> found;
  for (const PlacedOutput& output : plan.outputs) {
    found.push_back(read_output(output.path, written(plan, output)));
  }
  return found;
}

/// Where the original still is what was recorded, the place of the first difference.
void find_difference(const RecordedOutput& recorded, const fs::path& original,
                     const fs::path& repeated, ComparedFile& file) {
  const auto old_file =
      std::find_if(recorded.files.begin(), recorded.files.end(),
                   [&](const RecordedFile& one) { return one.path == file.within; });
  if (old_file == recorded.files.end() || old_file->kind != "file") return;
  const fs::path now = file.within.empty() ? original : original / file.within;
  const RecordedOutput there = read_output("", now);
  if (there.kind != "file" || there.digest != old_file->digest) return;
  file.first_difference =
      first_difference(now, file.within.empty() ? repeated : repeated / file.within);
}

std::vector<ComparedFile> compared_files(const Reproduction& plan, const RunRecord& record,
                                         const std::vector<RecordedOutput>& found) {
  std::vector<ComparedFile> files;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const RecordedOutput& recorded = record.end->outputs.at(i);
    for (ComparedFile& file : compare_output(recorded, found[i])) {
      if (file.what == "differs") {
        find_difference(recorded, plan.outputs[i].on_host, written(plan, plan.outputs[i]), file);
      }
      files.push_back(std::move(file));
    }
  }
  return files;
}

void add_host_causes(const RunRecord& record, std::vector<std::string>& causes) {
  if (!record.facts) {
    causes.emplace_back("host: the record does not say what it was");
    return;
  }
  const Facts now =
      probe_facts(host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root())));
  for (std::string& one : host_differences(*record.facts, now)) causes.push_back(std::move(one));
}

std::string compared_line(const ComparedFile& file) {
  std::string text = fmt::format("{:<8} {}", file.what, printable(file.path));
  if (file.what == "same") return text;
  if (file.recorded_bytes && file.found_bytes && *file.recorded_bytes != *file.found_bytes) {
    text += fmt::format("  {} bytes, now {}", *file.recorded_bytes, *file.found_bytes);
  } else if (const auto bytes = file.recorded_bytes ? file.recorded_bytes : file.found_bytes) {
    text += fmt::format("  {} bytes", *bytes);
  }
  if (file.first_difference) text += fmt::format(", from byte {}", *file.first_difference);
  return text;
}

void print_report(const Report& report, const Ui& ui) {
  if (ui.options.json) {
    ui.answer(render_record(report, {"mlenv.reproduce/1", "what a repeated run gave", ""}));
    return;
  }
  for (const ComparedFile& file : report.files) ui.answer_lines({compared_line(file)});
  if (report.recorded_exit != report.found_exit) {
    ui.answer(fmt::format("exit status {}, now {}", report.recorded_exit, report.found_exit));
  }
  if (report.result == "differs") {
    for (const std::string& cause : report.causes) {
      ui.answer("possible cause: " + printable(cause));
    }
  }
  ui.answer(fmt::format("{}: run {}{}", report.result, report.run,
                        report.by ? ", repeated by " + *report.by : ""));
}

int reproduce_command(const ReproduceOptions& options, Ui& ui) {
  const RunRecords records{runs_folder(store_folder())};
  const RunRecord record = records.read_settled(records.find(options.run), kCodeDeadline);
  const TemporaryFolder scratch = ui.store().scratch();
  Reproduction plan = plan_reproduction(ui, options, record, scratch.path());
  Report report;
  RecordedRun done;
  {
    const OutputAside aside;
    done = run_recorded(ui, plan.run, plan.start, {[&] { return read_written(plan); }, plan.code});
  }
  report.run = record.start.id;
  if (!done.id.empty()) report.by = done.id;
  report.code = plan.code_from;
  report.recorded_exit = record.end->exit_code;
  report.found_exit = static_cast<std::uint64_t>(done.outcome.exit.code);
  report.files = compared_files(plan, record, done.outputs);
  const bool same = report.recorded_exit == report.found_exit &&
                    std::all_of(report.files.begin(), report.files.end(),
                                [](const ComparedFile& file) { return file.what == "same"; });
  report.result = same ? "same" : "differs";
  report.causes = plan.causes;
  if (!same) add_host_causes(record, report.causes);
  print_report(report, ui);
  return same ? 0 : kAnswerIsNo;
}

}  // namespace

Action declare_reproduce(CLI::App& app) {
  auto options = std::make_shared<ReproduceOptions>();
  app.add_option("RUN", options->run, "an id, its beginning or end, or `last`")->required();
  take_one_word(app.add_option("-e,--env", options->env,
                               "a variable that the record masks: K=V, or the caller's K"));
  take_word_of(app.add_option("--runtime", options->runtime,
                              "another one than the run had: builtin, docker, podman or vm; runc, "
                              "crun or a path to one"),
               WordKind::file);
  app.add_flag("--with-present-code", options->with_present_code,
               "with the project as it is now, where its code is not that of the run");
  take_word_of(app.add_option("CMD", options->command,
                              "the command again, where the record masks words of it"),
               WordKind::job);
  app.footer("example: mlenv reproduce last");
  return [options](Ui& ui) { return reproduce_command(*options, ui); };
}

}  // namespace mlenv::cli
