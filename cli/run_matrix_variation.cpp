#include "cli/run_matrix_variation.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>

#include <fmt/format.h>

#include "base/handle.hpp"
#include "runner/matrix/placeholders.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {

fs::path make_variation_folder(const matrix::MatrixFolder& results,
                               const matrix::MatrixRecord& record,
                               const matrix::Variation& variation, bool for_all) {
  constexpr mode_t kForAll = 01777;
  const Fd folder = results.make_folder(variation);
  (void)::unlinkat(folder.get(), std::string(matrix::kMetricsFile).c_str(), 0);
  if (for_all) (void)::fchmod(folder.get(), kForAll);
  return fs::path(record.results) / variation.folder;
}

bool runs_as_other(const LocalRun& run) {
  return ::geteuid() == 0 && (run.options.user || !run.config.user.empty());
}

std::vector<std::string> variation_variables(const matrix::MatrixRecord& record,
                                             const matrix::Variation& variation,
                                             const std::vector<matrix::Value>& values) {
  std::vector<std::string> variables;
  for (const matrix::Value& value : values) variables.push_back(value.name + "=" + value.text);
  variables.push_back(fmt::format("MLENV_OUTPUT={}", matrix::kOutputTarget));
  variables.push_back("MLENV_MATRIX=" + record.id);
  variables.push_back(fmt::format("MLENV_VARIATION={}", variation.number));
  return variables;
}

std::vector<std::string> masked_argv(const matrix::Variation& variation,
                                     const std::vector<std::string>& command,
                                     const std::vector<std::string>& argv) {
  const bool has_secret =
      std::any_of(variation.values.begin(), variation.values.end(),
                  [](const RecordedVariable& one) { return !one.value.has_value(); });
  if (!has_secret) return without_secrets(argv);
  std::vector<matrix::Value> shown;
  for (const RecordedVariable& one : variation.values) {
    shown.push_back({one.name, one.value.value_or(std::string(kMasked))});
  }
  return without_secrets(with_values(command, shown, variation.number));
}

RecordedVariation recorded_variation(const matrix::MatrixRecord& record,
                                     const matrix::Variation& variation) {
  return {record.id,
          variation.number,
          record.variations.size(),
          variation.values,
          (fs::path(record.results) / variation.folder).string(),
          record.results};
}

}  // namespace mlenv::cli
