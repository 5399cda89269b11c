// `mlenv run --matrix --engine slurm`: one submission, of which each task is the job of a
// variation.
#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "cli/run_after.hpp"
#include "cli/run_job_data.hpp"
#include "cli/run_job_matrix.hpp"
#include "cli/slurm_array_follow.hpp"
#include "cli/slurm_submit.hpp"
#include "recipes/text.hpp"
#include "runner/after/after.hpp"
#include "runner/job/job_folders.hpp"
#include "runner/launch/slurm_array.hpp"
#include "runner/record/run_recorder.hpp"

namespace mlenv::cli {
namespace {

using matrix::MatrixRecord;

std::vector<std::uint64_t> numbers_of(const std::vector<std::size_t>& variations) {
  std::vector<std::uint64_t> numbers;
  numbers.reserve(variations.size());
  for (const std::size_t one : variations) numbers.push_back(one + 1);
  return numbers;
}

/// What is submitted, from before anything of it is there.
struct Submission {
  fs::path store;
  fs::path folder;
  fs::path program;

  std::string script(const PreparedJob& job, const std::vector<std::uint64_t>& numbers) const {
    job::SlurmScript script =
        batch_script(job, folder, program, slurm_after(store, job.start.after).words);
    script.output = folder.string();
    script.output_of_task = ".%a/out";
    script.array = job::array_words(numbers, job.matrix->choice.words.at_once);
    return job::slurm_script(job.choice.job, script);
  }
};

/// Folders of the jobs; what is not the array's goes again.
class TaskFolders {
 public:
  TaskFolders(const fs::path& folder, const std::vector<std::uint64_t>& numbers) {
    for (const std::uint64_t number : numbers) {
      folders_.push_back(std::make_unique<job::JobFolder>(job::task_folder(folder, number)));
    }
  }
  void keep_all() {
    for (const auto& folder : folders_) folder->keep();
  }
  void note(const std::string& array, const std::vector<std::uint64_t>& numbers,
            const std::string& name) const {
    for (std::size_t i = 0; i < folders_.size(); ++i) {
      const std::string own = name.empty() ? name : fmt::format("{}-{}", name, numbers[i]);
      write_file(folders_[i]->path() / "slurm",
                 job::array_task(array, numbers[i]) + "\n" + own + "\n", /*durable=*/false);
    }
  }

 private:
  std::vector<std::unique_ptr<job::JobFolder>> folders_;
};

std::string submitted(const fs::path& script) {
  try {
    return job::submit_to_slurm(script);
  } catch (Error& error) {
    if (std::string_view(error.what()).find("Invalid job array") == std::string_view::npos) throw;
    throw std::move(error).hint(
        "`scontrol show config` names the most that the site takes, MaxArraySize: make several "
        "matrices of this one");
  }
}

/// As it was before there was an array; a new one leaves nothing.
void put_back(const OpenedMatrix& opened) {
  if (!opened.resumed) return opened.folder.take_back(opened.record);
  try {
    opened.folder.write(opened.record);
  } catch (const Error&) {
    return;  // a full disk perhaps: the next one asks the records of the runs
  }
}

/// `array` has its id from when Slurm has it.
void submit_array(Ui& ui, PreparedJob& job, const Submission& submission,
                  const OpenedMatrix& opened, FollowedArray& array) {
  const MatrixRecord& record = opened.record;
  const fs::path& folder = submission.folder;
  array = {"", folder, not_done(record), false};
  const std::vector<std::uint64_t> numbers = numbers_of(array.variations);
  const std::string script = submission.script(job, numbers);
  std::vector<job::JobVariation> variations;
  for (const std::size_t one : array.variations) {
    variations.push_back(job_variation(*job.matrix, job.run, opened, one));
  }
  make_shared_program(submission.program);
  TaskFolders tasks{folder, numbers};  // before what makes the other one an array's
  job::JobFolder shared{folder};
  const job::PlanFile file = slurm_plan(ui, job, submission.store);
  shared.need(needs_of(file.plan));
  write_file(folder / "job", job::render_plan_file(file));
  write_file(folder / job::kVariationsFile, job::render_variations(variations));
  write_file(folder / "job.sh", script);
  array.id = submitted(folder / "job.sh");
  shared.keep();  // before anything that may fail: Slurm has it now
  tasks.keep_all();
  try {
    tasks.note(array.id, numbers, file.plan.job.name);
    note_array(record.results, array);
  } catch (Error& error) {
    throw taken_back(std::move(error), "array", array.id);
  }
}

/// `running` is written down before: should nothing be noted any more once Slurm has the array,
/// `--resume` looks for what its jobs recorded.
void begin(Ui& ui, PreparedJob& job, const Submission& submission, OpenedMatrix& opened,
           FollowedArray& array) {
  const MatrixRecord before = opened.record;
  opened.record.state = "running";
  try {
    opened.folder.write(opened.record);
    submit_array(ui, job, submission, opened, array);
  } catch (const Error&) {
    if (!array.id.empty()) throw;
    opened.record = before;
    put_back(opened);
    throw;
  }
}

/// Slurm began none of them where what they were to follow failed: throws `after-failed`.
void heed_failed_before(Ui& ui, const FollowedArray& array, const OpenedMatrix& opened,
                        const std::vector<std::string>& after) {
  const bool any_began = std::any_of(
      array.variations.begin(), array.variations.end(),
      [&](std::size_t one) { return opened.record.variations[one].state != "waiting"; });
  if (any_began) return;
  try {
    (void)not_over(ui.store().root(), after);
  } catch (const Error&) {
    put_back(opened);
    throw;
  }
}

void say_begin_array(const Ui& ui, const PreparedJob& job, const OpenedMatrix& opened,
                     const FollowedArray& array) {
  if (ui.options.json) return;
  const MatrixRecord& record = opened.record;
  const std::string all = counted(record.variations.size(), "variation");
  const std::size_t count = array.variations.size();
  std::string text = !opened.going_on.empty() ? fmt::format("{} of {} are in Slurm", count, all)
                     : opened.resumed         ? fmt::format("{} of {} are left", count, all)
                                              : all;
  text += ", each on " + nodes_text(job.choice.job.nodes);
  if (record.at_once < count) text += fmt::format(", {} at a time", record.at_once);
  ui.say(fmt::format("matrix {}: {}; array {} of Slurm; results in {}", record.id, text, array.id,
                     record.results));
}

/// It is begun, and goes on by itself.
int leave(const Ui& ui, const OpenedMatrix& opened) {
  opened.folder.write(opened.record);
  ui.answer(ui.options.json ? render_matrix(opened.record) : opened.record.id);
  return 0;
}

int follow(Ui& ui, const FollowedArray& array, OpenedMatrix& opened, const SignalQueue& signals,
           const std::vector<std::string>& after) {
  MatrixKeeper keeper{ui, opened};
  const ArrayEnd end = follow_array(ui, array, keeper, signals);
  if (end.left) return 128 + end.signal;
  keeper.finish(end.signal);
  forget_array(opened.record.results);
  if (end.signal == 0) heed_failed_before(ui, array, opened, after);
  return answer_matrix(ui, opened.record, end.signal);
}

}  // namespace

int run_matrix_in_slurm(Ui& ui, PreparedJob job) {
  const MatrixChoice& choice = job.matrix->choice;
  const auto now = std::chrono::system_clock::now();
  Submission submission;
  submission.store = fs::absolute(ui.store().root());
  submission.folder = job::jobs_folder(submission.store) / new_run_id(now);
  submission.program = shared_program(submission.store);
  const MatrixJob as = matrix_job(job);
  const std::vector<std::string> others = slurm_after(submission.store, job.start.after).others;
  if (job.choice.dry_run) {
    note_data(ui, job.data);
    if (!others.empty()) {
      ui.say(fmt::format("mlenv: submitted only once {} has ended well", join(others, ", ")));
    }
    return show_script(ui, job, submission.script(job, open_numbers(choice, as)));
  }
  if (const auto told = wait_before(ui, others)) return told->exit.code;
  FollowedArray array;
  OpenedMatrix opened = open_matrix(ui, choice, as, [&](const fs::path& results) {
    array = array_at(results, submission.store);
    const std::vector<std::uint64_t> numbers = numbers_of(array.variations);
    return std::set<std::uint64_t>(numbers.begin(), numbers.end());
  });
  MatrixRecord& record = opened.record;
  const std::size_t open = not_done(record).size();
  if (open == 0) {
    if (!ui.options.json) ui.say(fmt::format("matrix {}: all is done", record.id));
    return answer_matrix(ui, record, 0);
  }
  job::sweep_job_folders(submission.store, now);
  const SignalQueue signals{
      SignalQueue::Impatience::ends};  // from before there is an array that could be left alone
  if (array.variations.empty()) begin(ui, job, submission, opened, array);
  array.fail_fast = choice.words.fail_fast;
  record.state = "running";
  record.at_once = choice.words.at_once.value_or(array.variations.size());
  say_begin_array(ui, job, opened, array);
  if (job.start.detached) return leave(ui, opened);
  return follow(ui, array, opened, signals, job.start.after);
}

}  // namespace mlenv::cli
