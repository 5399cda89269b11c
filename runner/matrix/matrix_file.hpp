#pragma once
// What a matrix is and how far it got: mlenv.matrix/1, kept as RESULTS/matrix.json beside the
// variations' own folders.
//
// The file is written whole, at the start, at most once a second while variations end, and at the
// end. What a killed mlenv did not write any more is in the records of the runs (run_record.hpp),
// which name their matrix.
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/handle.hpp"
#include "runner/matrix/metrics.hpp"
#include "runner/matrix/words.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::matrix {

inline constexpr std::string_view kMatrixFile = "matrix.json";

struct Variation {
  std::uint64_t number = 1;
  std::vector<RecordedVariable> values;  ///< no value: masked
  std::string folder;                    ///< its own, below the results
  /// `waiting`, `running`, `stopped` (it was asked to end before it was done), or of a run that is
  /// over its record's: `done`, `failed`, `killed`, `refused`, `lost`.
  std::string state = "waiting";
  std::optional<std::string> run;  ///< id of the last one
  std::optional<std::uint64_t> exit_code;
  std::optional<double> seconds;
  std::vector<Metric> metrics;
  friend bool operator==(const Variation&, const Variation&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("number", self.number);
    visit("values", self.values);
    visit("folder", self.folder);
    visit("state", self.state);
    visit("run", self.run);
    visit("exit_code", self.exit_code);
    visit("seconds", self.seconds);
    visit("metrics", self.metrics);
  }
};

/// A part of what is run, by which a matrix that goes on is told from another.
struct PlanPart {
  std::string what;    ///< `command`
  std::string digest;  ///< of it
  friend bool operator==(const PlanPart&, const PlanPart&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("what", self.what);
    visit("digest", self.digest);
  }
};

struct MatrixRecord {
  std::string id;
  std::string started;  ///< UTC, RFC 3339 with milliseconds
  std::string state;    ///< `running`, `done`, `failed`, `stopped`
  std::string results;  ///< folder of this machine
  RecordedImage image;
  std::vector<std::string> argv;  ///< with `{lr}` in it; secrets masked
  std::vector<PlanPart> plan;
  std::uint64_t at_once = 1;
  std::optional<std::uint64_t> threads;  ///< that each was told to use
  std::optional<std::string> commit;     ///< of the code when it began
  std::optional<std::string> changed_digest;
  std::vector<Variation> variations;
  friend bool operator==(const MatrixRecord&, const MatrixRecord&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("id", self.id);
    visit("started", self.started);
    visit("state", self.state);
    visit("results", self.results);
    visit("image", self.image);
    visit("argv", self.argv);
    visit("plan", self.plan);
    visit("at_once", self.at_once);
    visit("threads", self.threads);
    visit("commit", self.commit);
    visit("changed_digest", self.changed_digest);
    visit("variations", self.variations);
  }
};

std::string render_matrix(const MatrixRecord& record);
/// Throws as `read_record` does.
MatrixRecord parse_matrix_record(std::string_view text, std::string_view shown);

/// What became of a variation by its run's record. One that `mlenv stop` ended is `stopped`, with
/// whatever status: what it was to do is not done.
std::string state_by(const RunRecord& run);

/// How many are in one of these states.
std::size_t count_in(const MatrixRecord& record, std::string_view state);
/// Those that did not end with status 0, in order.
std::vector<std::size_t> not_done(const MatrixRecord& record);

/// All that `axes` mean, waiting; each with a folder of its own, named by its values where a file
/// system can hold them: `lr=0.1,seed=3`. Secrets are masked, and stand in no folder's name.
std::vector<Variation> variations_of(const std::vector<Axis>& axes);

/// `lr=0.1 seed=3`, for one line.
std::string shown_values(const Variation& variation);

/// Parts of the one that the other has not alike: `the command`, `the parameters`.
std::vector<std::string> differing_parts(const MatrixRecord& from, const MatrixRecord& to);

/// The results of a matrix, held against others that would work on it. They often lie in a project
/// that its own variations may write to: everything goes by the folder that was opened first.
class MatrixFolder {
 public:
  /// Makes it. Throws `matrix-busy` where another mlenv works on it.
  explicit MatrixFolder(const fs::path& folder);
  /// One that is open already; `made`: by us.
  MatrixFolder(fs::path folder, Fd open, bool made);
  const fs::path& path() const { return folder_; }
  int fd() const { return open_.get(); }
  /// Without links, wherever runs that may write beside it have moved it meanwhile.
  std::string real_path() const;
  /// The variation's own folder, made if need be. Throws `matrix-exists` where something else is in
  /// its place.
  Fd make_folder(const Variation& variation) const;
  /// nullopt: it holds none yet.
  std::optional<MatrixRecord> read() const;
  void write(const MatrixRecord& record) const;
  /// Throws `matrix-exists` where a new matrix would write over somebody's measurements.
  void require_no_others(const MatrixRecord& record) const;
  /// A matrix of which nothing ran leaves nothing: its file, and folders that are empty.
  void take_back(const MatrixRecord& record) const noexcept;

 private:
  /// By which it is reached, whatever has its name by now.
  fs::path inside() const;

  fs::path folder_;
  Fd open_;
  bool made_folder_;
  bool made_lock_;
  FileLock lock_;
};

/// What lies there, without holding it; nullopt for none, or one that cannot be read.
std::optional<MatrixRecord> peek(const fs::path& folder);

/// What became of variations that a killed mlenv did not write down, by the runs' records, with
/// their metrics where they can be read. Waits for those that still end, and leaves alone those of
/// `going_on` (numbers), which somebody else looks after.
void settle(MatrixRecord& record, const fs::path& runs_folder,
            const std::set<std::uint64_t>& going_on = {});

}  // namespace mlenv::matrix
