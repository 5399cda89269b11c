#pragma once
// `mlenv run --matrix`: variations of one command side by side, each with a record and a folder of
// its own (docs/experiments.md).
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/run_devices.hpp"
#include "cli/run_life.hpp"
#include "cli/run_options.hpp"
#include "cli/run_record.hpp"
#include "cli/run_repeat.hpp"
#include "runner/matrix/words.hpp"

namespace mlenv::cli {

struct MatrixWords {
  std::vector<std::string> axes;  ///< of `--matrix`
  std::optional<std::size_t> at_once;
  std::string results;
  bool resume = false;
  bool fail_fast = false;
};
void add_matrix_options(CLI::App& app, MatrixWords& words);
/// Those that take the next word.
inline constexpr std::array<std::string_view, 3> kMatrixOptionsWithWords = {
    "--matrix", "--parallel", "--results"};

/// The same, understood.
struct MatrixChoice {
  std::vector<matrix::Axis> axes;
  MatrixWords words;
};

/// What else is asked of the run, as far as the matrix depends on it.
struct BesideMatrix {
  const std::vector<std::string>& argv;
  const std::vector<std::string>& env;  ///< of `-e`
  const RunChoice& choice;
  const Life& life;
  bool terminal = false;
  bool in_slurm = false;  ///< which keeps all of them, and starts them
};
/// nullopt: it is an ordinary run. Throws `bad-matrix` and `usage`, also for what several runs
/// cannot have.
std::optional<MatrixChoice> parse_matrix(const MatrixWords& words, const BesideMatrix& beside);

/// A run that is ready but for what tells variations apart: devices, values, folders.
struct MatrixJob {
  LocalRun run;  ///< its devices are those that all get
  Image image;
  RunBackground background;
  DeviceChoice devices;
  bool with_gpus = false;
  Life life;
  RepeatOptions repeat;
  std::string form{};  ///< of a job on nodes: what more its variations have alike; empty: none
};

/// Runs them to the end, and answers with a table, or mlenv.matrix/1. Status: 0 when each ended
/// with 0, else 1; 128+n after a signal.
int run_matrix(Ui& ui, const MatrixChoice& choice, const MatrixJob& job);

}  // namespace mlenv::cli
