#pragma once
// Where a matrix's results are: a new folder, or that of the one that goes on.
#include <functional>
#include <set>
#include <vector>

#include "cli/run_matrix.hpp"
#include "runner/matrix/matrix_file.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::cli {

struct OpenedMatrix {
  matrix::MatrixFolder folder;
  matrix::MatrixRecord record;
  bool resumed = false;
  std::set<std::uint64_t> going_on{};  ///< numbers of those that run or wait without us
};

/// Which variations of the results in a folder somebody else still looks after, by number.
using GoingOn = std::function<std::set<std::uint64_t>(const fs::path& results)>;

/// A new one, or with `--resume` the one in the same folder, or, where no folder is named, the
/// newest of this command. Says where the code is not as it was. Throws `matrix-exists` for a
/// folder that has one, `no-matrix` and `matrix-differs` where there is none to go on with,
/// `matrix-busy`.
OpenedMatrix open_matrix(Ui& ui, const MatrixChoice& choice, const MatrixJob& job,
                         const GoingOn& going_on = {});
/// The same without making anything: what is not done of the one that it would be.
std::vector<std::uint64_t> open_numbers(const MatrixChoice& choice, const MatrixJob& job);

}  // namespace mlenv::cli
