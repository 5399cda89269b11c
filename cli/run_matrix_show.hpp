#pragma once
// A matrix as it is shown: while it goes on, and as a table at the end.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "runner/matrix/matrix_file.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::cli {

/// `failed (3)`, `killed (SIGKILL)`, `done`
std::string state_text(const matrix::Variation& variation);

/// A header and a line for each variation: number, values, state, time, run, metrics.
std::vector<std::string> matrix_table(const matrix::MatrixRecord& record);

/// Through the progress: an activity for all, and one for each that runs, which on a terminal shows
/// since when and what it wrote last.
class MatrixShow {
 public:
  MatrixShow(Progress& progress, const matrix::MatrixRecord& record, fs::path runs_folder);
  MatrixShow(const MatrixShow&) = delete;
  MatrixShow& operator=(const MatrixShow&) = delete;
  ~MatrixShow();

  void began(std::size_t variation);
  void ended(std::size_t variation);
  /// It waits again.
  void put_back(std::size_t variation, const std::string& why);
  /// What has changed since.
  void refresh();
  void note(const std::string& sentence) { progress_.note(sentence); }

 private:
  struct Shown {
    int activity = 0;
    std::chrono::steady_clock::time_point since;
    fs::path log_of{};
    std::optional<LogReader> log;
    std::string last_line;
  };
  void read_log(std::size_t variation, Shown& shown) const;
  /// What it wrote last, where that is the reason of its end and cheap to know.
  std::string last_words(std::size_t variation, Shown& shown) const;

  Progress& progress_;
  const matrix::MatrixRecord& record_;
  fs::path runs_folder_;
  int all_ = 0;
  std::map<std::size_t, Shown> running_;
};

}  // namespace mlenv::cli
