#include "cli/run_matrix_variation.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "runner/matrix/placeholders.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv::cli {

fs::path make_variation_folder(const matrix::MatrixRecord& record,
                               const matrix::Variation& variation, bool for_all) {
  fs::path folder = fs::path(record.results) / variation.folder;
  make_folders(record.results);
  constexpr mode_t kUsual = 0777;
  constexpr mode_t kForAll = 01777;
  if (::mkdir(folder.c_str(), kUsual) != 0 && errno != EEXIST) {
    throw os_error(errno, "cannot make the folder `{}`", folder.string());
  }
  // Runs write to the project, and what is mounted here must not be where a link of theirs leads.
  for (const fs::path& one : {fs::path(record.results), folder}) {
    std::error_code error;
    if (!fs::is_symlink(one, error) && fs::is_directory(one, error)) continue;
    throw refusal("matrix-exists", "`{}` is not the folder that mlenv made", one.string())
        .because("something is in its place")
        .hint("name another folder for results: `--results DIR`");
  }
  const Fd at{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (!at) throw os_error(errno, "cannot open the folder `{}`", folder.string());
  (void)::unlinkat(at.get(), std::string(matrix::kMetricsFile).c_str(), 0);
  if (for_all) (void)::fchmod(at.get(), kForAll);
  return folder;
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
