// `mlenv stop` and `mlenv wait`: the end of runs.
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/run_life.hpp"
#include "cli/running.hpp"
#include "cli/slurm_jobs.hpp"
#include "cli/ui.hpp"
#include "cli/usage.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/launch/slurm_job.hpp"
#include "runner/local/exec_client.hpp"

namespace mlenv::cli {
namespace {

using nlohmann::json;

/// All of them are found before anything is done about one.
std::vector<std::string> ids_of(const RunRecords& records, const std::vector<std::string>& words) {
  std::vector<std::string> ids;
  ids.reserve(words.size());
  for (const std::string& word : words) ids.push_back(records.find(word));
  return ids;
}

/// How they ended, as JSON; a run without an end was lost.
json ended_as_json(const std::vector<RunRecord>& ended) {
  json runs = json::array();
  for (const RunRecord& record : ended) {
    json name;
    if (record.start.name) name = *record.start.name;
    json code;
    if (record.end) code = record.end->exit_code;
    runs.push_back(
        {{"id", record.start.id}, {"name", name}, {"state", record.state}, {"exit_code", code}});
  }
  return {{"schema", "mlenv.runs-ended/1"}, {"runs", runs}};
}

/// True: it was running.
bool ask_to_stop(const RunRecords& records, const std::string& id, const StopRequest& request) {
  if (!records.goes_on(id)) return false;
  try {
    stop_run(records.folder_of(id), id, request);
  } catch (const Error& error) {
    // It may have ended right now; one that still goes on is out of reach.
    if (error.code() != "run-ended" || records.goes_on(id)) throw;
  }
  return true;
}

/// Cancels it and waits for its end; its record, if it has begun.
void stop_in_slurm(const RunRecords& records, const LeftJob& job, std::vector<RunRecord>& ended) {
  job::cancel_in_slurm(job.slurm);
  try {
    wait_in_slurm(job);
  } catch (const Error& error) {
    if (!job::says_unknown(error)) throw;  // of an array, what has not begun is forgotten at once
  }
  const std::string record = job::record_of_job(job.folder);
  if (!record.empty()) ended.push_back(records.read_brief(record));
}

int stop_command(const std::vector<std::string>& all, const std::string& time, Ui& ui) {
  const RunRecords records = run_records();
  std::vector<std::string> words;
  std::vector<LeftJob> left;
  for (const std::string& word : all) {
    if (auto job = job_in_slurm(records, word)) {
      left.push_back(*std::move(job));
    } else {
      words.push_back(word);
    }
  }
  const std::vector<std::string> ids = ids_of(records, words);
  StopRequest request;
  if (!time.empty()) {
    request.grace_ms = static_cast<std::uint64_t>(duration_of("--time", time).count());
  }
  std::vector<bool> was_running;
  for (const std::string& id : ids) was_running.push_back(ask_to_stop(records, id, request));
  std::vector<RunRecord> ended;
  for (const LeftJob& job : left) {
    stop_in_slurm(records, job, ended);
    if (!ui.options.json) ui.answer(job.id);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    records.wait_for_end(ids[i]);
    ended.push_back(records.read_brief(ids[i]));
    if (!was_running[i]) {
      ui.say(fmt::format("run `{}` had ended already: {}", ids[i], ended.back().state));
    } else if (!ui.options.json) {
      ui.answer(ids[i]);
    }
  }
  if (ui.options.json) ui.answer(canonical(ended_as_json(ended)));
  return 0;
}

Error lost(const std::string& id) {
  return failure("run-lost", "how run `{}` ended is not known", id)
      .because("its mlenv was killed, or the machine went down, before the end")
      .hint("`mlenv runs show` has what is known of it");
}

int wait_command(const std::vector<std::string>& words, Ui& ui) {
  const RunRecords records = run_records();
  std::vector<std::string> ids;
  for (const std::string& word : words) {
    // Put back into the queue, it may have another record in the end.
    if (const auto job = job_in_slurm(records, word)) wait_in_slurm(*job);
    ids.push_back(begun_run(ui, records, word, true));
  }
  std::vector<RunRecord> ended;
  for (const std::string& id : ids) {
    SlurmRunLife{ui, records, id}.wait_for_end();
    ended.push_back(records.read_brief(id));
    if (!ui.options.json && ended.back().end) {
      ui.answer(std::to_string(ended.back().end->exit_code));
    }
  }
  if (ui.options.json) ui.answer(canonical(ended_as_json(ended)));
  for (const RunRecord& record : ended) {
    if (!record.end) throw lost(record.start.id);
  }
  return static_cast<int>(ended.back().end->exit_code);
}

CLI::Option* add_runs(CLI::App& app, std::vector<std::string>& words) {
  CLI::Option* option =
      app.add_option("RUN", words, "ids, their beginnings or ends, names, or `last`")->required();
  take_word_of(option, WordKind::running);
  return option;
}

}  // namespace

Action declare_stop(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  auto time = std::make_shared<std::string>();
  (void)add_runs(app, *words);
  app.add_option("--time", *time, "from the signal to SIGKILL; by default the run's, 10s")
      ->type_name("DURATION");
  app.footer("example: mlenv stop --time 1m last");
  return [=](Ui& ui) { return stop_command(*words, *time, ui); };
}

Action declare_wait(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  (void)add_runs(app, *words);
  app.footer("example: mlenv wait last");
  return [=](Ui& ui) { return wait_command(*words, ui); };
}

}  // namespace mlenv::cli
