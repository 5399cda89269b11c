#include "cli/run_matrix_results.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "base/beneath.hpp"
#include "base/digest.hpp"
#include "base/json.hpp"
#include "base/paths.hpp"
#include "base/printable.hpp"
#include "cli/settings.hpp"
#include "cli/ui.hpp"
#include "recipes/text.hpp"
#include "runner/record/code_state.hpp"
#include "runner/record/kept_layers.hpp"
#include "runner/record/run_recorder.hpp"
#include "runner/record/run_records.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {
namespace {

using matrix::MatrixFolder;
using matrix::MatrixRecord;
using nlohmann::json;

/// What all results without a folder of their own name lie in, beside the project's files.
constexpr std::string_view kAllResults = "matrix";

matrix::PlanPart part(std::string what, const json& value) {
  // Words need not be UTF-8.
  return {std::move(what),
          Digest::of(value.dump(-1, ' ', false, json::error_handler_t::replace)).str()};
}

json environment(const LocalRun& run) {
  const std::map<std::string, std::string> all = all_variables();
  json variables = json::array();
  for (const std::string& word : run.env) {
    const auto own = all.find(word);
    variables.push_back(own == all.end() ? word : word + "=" + own->second);
  }
  return variables;
}

json folders(const LocalRun& run) {
  json mounts = json::array();
  for (const Mount& one : run.mounts) {
    mounts.push_back({one.source.string(), one.target, one.read_only});
  }
  return {mounts, run.workdir, run.project ? run.project->string() : ""};
}

/// What must be alike for runs to be variations of one thing.
std::vector<matrix::PlanPart> matrix_plan(const MatrixChoice& choice, const MatrixJob& job) {
  json parameters = json::array();
  for (const matrix::Axis& axis : choice.axes) parameters.push_back({axis.names, axis.rows});
  std::vector<matrix::PlanPart> plan = {
      part("image", job.image.digest().str()),
      part("command", job.run.argv),
      part("parameters", parameters),
      part("variables", environment(job.run)),
      part("mounts and folders", folders(job.run)),
      part("outputs and seeds",
           {job.repeat.outputs, job.repeat.deterministic, job.repeat.seed.value_or(0)})};
  if (!job.form.empty()) plan.push_back(part("nodes and strategy", job.form));
  // Only where there are any: plans of before have no such part.
  if (const auto& layer = job.background.layer) {
    const KeptLayers layers{store_folder()};
    plan.push_back(part("kept files", {layer->id, layers.generation(layer->id)}));
  }
  return plan;
}

MatrixRecord new_record(const MatrixChoice& choice, const MatrixJob& job) {
  const auto now = std::chrono::system_clock::now();
  MatrixRecord record;
  record.id = new_run_id(now);
  record.started = utc_text(now);
  const RunStart start = run_start(job.run, job.image, job.background);
  record.image = start.image;
  record.argv = start.argv;
  record.plan = matrix_plan(choice, job);
  record.variations = matrix::variations_of(choice.axes);
  return record;
}

/// Below the project; without one where the command was typed.
fs::path all_results(const LocalRun& run) {
  return run.project.value_or(fs::current_path()) / kAllResults;
}

struct MadeFolder {
  Fd open;
  bool made = false;
};

/// `name` in the open folder `at`. Runs write to the project: where they put a link that leads
/// elsewhere, nobody follows it.
MadeFolder open_or_make(int at, const std::string& name, const fs::path& shown, Links links) {
  constexpr mode_t kUsual = 0777;
  const auto open = [&] { return open_beneath(at, name, O_RDONLY | O_DIRECTORY, links); };
  MadeFolder folder{open()};
  if (!folder.open && errno == ENOENT && ::mkdirat(at, name.c_str(), kUsual) == 0) {
    folder = {open(), true};
  }
  if (folder.open) return folder;
  const int why = errno;
  if (why != ELOOP && why != EXDEV && why != ENOTDIR && why != EEXIST) {
    throw os_error(why, "cannot make the folder `{}`", shown.string());
  }
  throw refusal("matrix-exists", "`{}` is not a folder of the project", shown.string())
      .because("it is a link that leads elsewhere, or something else is in its place")
      .hint("name the folder for results yourself: `--results DIR`");
}

/// Below the project: results are not what git looks after, unless the person put them where it
/// does.
MatrixFolder folder_in_project(const fs::path& folder) {
  const fs::path all = folder.parent_path();
  const Fd project = open_file(all.parent_path(), O_PATH | O_DIRECTORY);
  const MadeFolder results = open_or_make(project.get(), all.filename(), all, Links::below);
  if (results.made) {
    const Fd ignore{::openat(results.open.get(), ".gitignore",
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666)};
    if (ignore) write_all(ignore.get(), as_bytes("*\n"));
  }
  MadeFolder own = open_or_make(results.open.get(), folder.filename(), folder, Links::none);
  return {folder, std::move(own.open), own.made};
}

std::string standing(const MatrixRecord& record) {
  return fmt::format("it has {} of {} variations done", matrix::count_in(record, "done"),
                     record.variations.size());
}

Error matrix_differs(const fs::path& folder, const MatrixRecord& known, const MatrixRecord& asked) {
  Error error = refusal("matrix-differs", "the matrix in `{}` is another one: not the same {}",
                        folder.string(), join(matrix::differing_parts(known, asked), ", "));
  if (known.image.digest != asked.image.digest) {
    error.because(fmt::format("the image was {}, and `{}` is {}", known.image.digest,
                              asked.image.name, asked.image.digest));
  }
  if (known.argv != asked.argv) {
    error.because(printable(fmt::format("the command was: {}", join(known.argv, " "))));
  }
  return std::move(error).hint(
      "go on with what it was begun with; or leave `--resume` out, and begin a new one");
}

/// The newest one of this command.
fs::path to_go_on(const fs::path& all, const MatrixRecord& asked) {
  std::vector<std::pair<MatrixRecord, fs::path>> found;
  for (const fs::path& path : list_folder(all)) {
    if (auto record = matrix::peek(path)) found.emplace_back(*std::move(record), path);
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first.id > b.first.id; });
  for (const auto& [record, path] : found) {
    if (record.plan == asked.plan) return path;
  }
  if (!found.empty()) throw matrix_differs(found.front().second, found.front().first, asked);
  throw usage_error("no-matrix", "there is no matrix to go on with in `{}`", all.string())
      .hint("leave `--resume` out to begin one; `--results DIR` is where another lies");
}

fs::path results_folder(const MatrixChoice& choice, const MatrixJob& job,
                        const MatrixRecord& asked) {
  if (!choice.words.results.empty()) return fs::absolute(choice.words.results).lexically_normal();
  const fs::path all = fs::absolute(all_results(job.run)).lexically_normal();
  if (!job.life.name.empty()) return all / job.life.name;
  return choice.words.resume ? to_go_on(all, asked) : all / asked.id;
}

std::vector<std::string> within(const fs::path& project, const fs::path& results) {
  if (project == results || !is_beneath(results.string(), project.string())) return {};
  return {results.lexically_relative(project).string()};
}

void note_code(Ui& ui, const LocalRun& run, MatrixRecord& record, bool resumed) {
  if (!run.project) return;
  const fs::path project = fs::absolute(*run.project).lexically_normal();
  const CodeState code = code_state(project, within(project, record.results));
  if (!resumed) {
    record.commit = code.commit.value;
    record.changed_digest = code.changed_digest.value;
    return;
  }
  const bool known = record.changed_digest && code.changed_digest;
  if (!known ||
      (record.commit == code.commit.value && record.changed_digest == code.changed_digest.value)) {
    return;
  }
  ui.say(fmt::format("note: the code is not what it was when this matrix began{}; the {} done stay",
                     record.commit ? " (commit " + record.commit->substr(0, 12) + ")" : "",
                     matrix::count_in(record, "done")));
}

}  // namespace

OpenedMatrix open_matrix(Ui& ui, const MatrixChoice& choice, const MatrixJob& job,
                         const GoingOn& going_on) {
  MatrixRecord asked = new_record(choice, job);
  const fs::path folder = results_folder(choice, job, asked);
  if (choice.words.resume && !fs::exists(folder / matrix::kMatrixFile)) {
    throw usage_error("no-matrix", "there is no matrix to go on with in `{}`", folder.string())
        .hint("leave `--resume` out to begin one there");
  }
  // One that the person named may be a link: it is followed once, now.
  OpenedMatrix opened{
      choice.words.results.empty() ? folder_in_project(folder) : MatrixFolder{folder}, {}};
  std::optional<MatrixRecord> known = opened.folder.read();
  if (known && !choice.words.resume) {
    throw refusal("matrix-exists", "`{}` holds a matrix", folder.string())
        .because(standing(*known))
        .hint("`--resume` goes on with it; another `--results` or `--name` begins a new one");
  }
  opened.resumed = known.has_value();
  if (known) {
    if (known->plan != asked.plan) throw matrix_differs(folder, *known, asked);
    opened.record = *std::move(known);
    opened.record.results = opened.folder.real_path();  // it may have been moved
    if (going_on) opened.going_on = going_on(folder);
    matrix::settle(opened.record, runs_folder(ui.store().root()), opened.going_on);
  } else {
    opened.record = std::move(asked);
    opened.folder.require_no_others(opened.record);
    opened.record.results = opened.folder.real_path();
  }
  note_code(ui, job.run, opened.record, opened.resumed);
  return opened;
}

std::vector<std::uint64_t> open_numbers(const MatrixChoice& choice, const MatrixJob& job) {
  MatrixRecord record = new_record(choice, job);
  if (choice.words.resume) {
    const fs::path folder = results_folder(choice, job, record);
    if (auto known = matrix::peek(folder)) record = *std::move(known);
  }
  std::vector<std::uint64_t> numbers;
  for (const std::size_t one : not_done(record)) numbers.push_back(one + 1);
  return numbers;
}

}  // namespace mlenv::cli
