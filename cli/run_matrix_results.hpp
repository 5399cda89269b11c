#pragma once
// Where a matrix's results are: a new folder, or that of the one that goes on.
#include "cli/run_matrix.hpp"
#include "runner/matrix/matrix_file.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::cli {

struct OpenedMatrix {
  matrix::MatrixFolder folder;
  matrix::MatrixRecord record;
  bool resumed = false;
};

/// A new one, or with `--resume` the one in the same folder, or, where no folder is named, the
/// newest of this command. Says where the code is not as it was. Throws `matrix-exists` for a
/// folder that has one, `no-matrix` and `matrix-differs` where there is none to go on with,
/// `matrix-busy`.
OpenedMatrix open_matrix(Ui& ui, const MatrixChoice& choice, const MatrixJob& job);

}  // namespace mlenv::cli
