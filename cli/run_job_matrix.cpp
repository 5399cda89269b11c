#include "cli/run_job_matrix.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/run_after.hpp"
#include "cli/run_matrix_results.hpp"
#include "cli/run_matrix_variation.hpp"
#include "cli/slurm_submit.hpp"
#include "recipes/text.hpp"
#include "runner/job/words.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv::cli {
namespace {

/// What a result depends on beside the command: so many ranks, in these roles.
std::string form_of(const job::Job& job) {
  return canonical({{"nodes", {job.nodes.least, job.nodes.most}},
                    {"ranks_per_node", job.ranks_per_node},
                    {"strategy", job::name_of(job.strategy)},
                    {"roles", {job.roles.chief, job.roles.servers, job.roles.evaluator}},
                    {"async", job.roles.async}});
}

}  // namespace

MatrixJob matrix_job(const PreparedJob& job) {
  RepeatOptions repeat;
  if (const auto& switches = job.start.deterministic) repeat = {true, switches->seed, {}};
  return {job.run,          job.image, job.matrix->background, {}, false,
          job.matrix->life, repeat,    form_of(job.choice.job)};
}

job::JobVariation job_variation(const JobMatrix& matrix, const LocalRun& run,
                                const OpenedMatrix& opened, std::size_t index) {
  const matrix::MatrixRecord& record = opened.record;
  const matrix::Variation& variation = record.variations.at(index);
  const std::vector<matrix::Value> values = values_of(matrix.choice.axes, index);
  (void)make_variation_folder(opened.folder, record, variation, runs_as_other(run));
  job::JobVariation one;
  one.recorded = recorded_variation(record, variation);
  one.argv = with_values(run.argv, values, variation.number);
  one.recorded_argv = masked_argv(variation, run.argv, one.argv);
  one.env = variation_variables(record, variation, values);
  return one;
}

std::string nodes_text(const job::NodeCount& nodes) {
  if (nodes.least == nodes.most) return counted(nodes.most, "node");
  return fmt::format("{} to {}", nodes.least, counted(nodes.most, "node"));
}

std::vector<ShownVariation> shown_variations(const PreparedJob& job) {
  const MatrixChoice& choice = job.matrix->choice;
  const std::vector<matrix::Variation> all = matrix::variations_of(choice.axes);
  std::vector<ShownVariation> shown;
  for (const std::uint64_t number : open_numbers(choice, matrix_job(job))) {
    const matrix::Variation& one = all.at(number - 1);
    const std::vector<std::string> argv =
        with_values(job.run.argv, values_of(choice.axes, number - 1), number);
    shown.push_back({number, shown_values(one), masked_argv(one, job.run.argv, argv)});
  }
  return shown;
}

int run_job_matrix(Ui& ui, PreparedJob job) {
  const bool in_slurm = job.choice.engine == "slurm";
  if (in_slurm) return run_matrix_in_slurm(ui, std::move(job));
  // One wait for all of them.
  const std::vector<std::string> after = std::exchange(job.start.after, {});
  if (const auto told = wait_before(ui, after)) return told->exit.code;
  return run_matrix_beside(ui, std::move(job));
}

}  // namespace mlenv::cli
