#include "cli/run_job_matrix.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/run_matrix_variation.hpp"
#include "cli/slurm_submit.hpp"
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
  return {job.run, job.image, job.matrix->background,   {}, false, job.matrix->life,
          {},      form_of(job.choice.job)};
}

job::JobVariation job_variation(const JobMatrix& matrix, const LocalRun& run,
                                const matrix::MatrixRecord& record, std::size_t index) {
  const matrix::Variation& variation = record.variations.at(index);
  const std::vector<matrix::Value> values = values_of(matrix.choice.axes, index);
  (void)make_variation_folder(record, variation, runs_as_other(run));
  job::JobVariation one;
  one.recorded = recorded_variation(record, variation);
  one.argv = with_values(run.argv, values, variation.number);
  one.recorded_argv = masked_argv(variation, run.argv, one.argv);
  one.env = variation_variables(record, variation, values);
  return one;
}

int run_job_matrix(Ui& ui, PreparedJob job) {
  return run_matrix_in_slurm(ui, std::move(job));
}

}  // namespace mlenv::cli
