#pragma once
// A matrix's record while its variations run: kept up, shown, and written down now and then. And
// what is answered in the end.
#include <chrono>
#include <optional>
#include <string>

#include "cli/run_matrix_results.hpp"
#include "cli/run_matrix_show.hpp"
#include "runner/matrix/drive.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::cli {

class MatrixKeeper {
 public:
  /// Writes it down, and begins to show it.
  MatrixKeeper(Ui& ui, OpenedMatrix& opened);

  /// Takes what `drive` tells: all but how a variation is started.
  void watch(matrix::DriveEvents& events);
  void began(std::size_t index);
  void recorded(std::size_t index, const std::string& run);
  void ended(const matrix::Ended& ended);
  /// It was given up before it ran: it waits as before.
  void given_up(std::size_t index);
  /// The same of one that had begun, and why.
  void put_back(std::size_t index, const std::string& why);
  void stopping(bool again);
  /// A sentence about one, for the person.
  void note(std::size_t index, const std::string& sentence);
  /// At least every second.
  void tick();
  /// The last word on it. `signal`: that ended it; 0: none.
  void finish(int signal, const std::optional<Error>& refused = std::nullopt);
  const matrix::MatrixRecord& record() const { return opened_.record; }

 private:
  void take_record(const std::string& id, matrix::Variation& one);
  void take_metrics(matrix::Variation& one);
  void write();

  Ui& ui_;
  OpenedMatrix& opened_;
  RunRecords runs_;
  std::optional<MatrixShow> show_;
  bool dirty_ = false;
  bool told_ = false;
  std::chrono::steady_clock::time_point written_;
};

/// None of its variations did.
bool nothing_ran(const matrix::MatrixRecord& record);

/// The table, or mlenv.matrix/1, and the status: 0 when each is done, else 1; 128+n after signal n.
int answer_matrix(const Ui& ui, const matrix::MatrixRecord& record, int signal);

}  // namespace mlenv::cli
