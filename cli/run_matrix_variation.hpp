#pragma once
// What one variation of a matrix has that the others have not, wherever it runs.
#include <string>
#include <vector>

#include "runner/local/run.hpp"
#include "runner/matrix/matrix_file.hpp"

namespace mlenv::cli {

/// Its folder below the results, made if need be: checkpoints of a run before stay in it, its
/// result does not. `for_all`: whoever it runs as may write there.
fs::path make_variation_folder(const matrix::MatrixFolder& results,
                               const matrix::MatrixRecord& record,
                               const matrix::Variation& variation, bool for_all);
/// Whether the command has another user than mlenv.
bool runs_as_other(const LocalRun& run);

/// `K=V`: its values, its folder as it sees it, and who it is.
std::vector<std::string> variation_variables(const matrix::MatrixRecord& record,
                                             const matrix::Variation& variation,
                                             const std::vector<matrix::Value>& values);

/// Its command as it may be written down: `command` is the matrix's, `argv` the one with its
/// values. A secret value stays one in it.
std::vector<std::string> masked_argv(const matrix::Variation& variation,
                                     const std::vector<std::string>& command,
                                     const std::vector<std::string>& argv);

RecordedVariation recorded_variation(const matrix::MatrixRecord& record,
                                     const matrix::Variation& variation);

}  // namespace mlenv::cli
