#pragma once
// How MPI's own programs are asked to start ranks, and what they and their ranks say. Plain.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv::mpi {

/// Whether a command starts its ranks itself: mpirun and its kin, horovodrun, deepspeed.
bool starts_ranks(std::string_view program);

enum class Flavour {
  open_mpi,
  hydra,  ///< MPICH, MVAPICH, Intel MPI
};
/// By what `mpirun --version` says; nullopt: neither.
std::optional<Flavour> flavour_of(std::string_view version);

/// What mpirun is started with, so that each line says whose it is where there are several ranks;
/// `program` comes before the command.
std::vector<std::string> mpirun_argv(Flavour flavour, std::uint64_t ranks,
                                     std::uint64_t ranks_per_node, std::string_view program,
                                     const std::vector<std::string>& command);

/// What a rank is, in the words of whoever started it.
struct RankPlace {
  std::uint64_t rank = 0;
  std::uint64_t world = 1;
  std::uint64_t local_rank = 0;
  std::uint64_t local_world = 1;
  friend bool operator==(const RankPlace&, const RankPlace&) = default;
};
using Environment = std::map<std::string, std::string>;
/// nullopt: nobody started it as a rank.
std::optional<RankPlace> rank_place(const Environment& env);

/// What mpirun wrote, in lines: `3: text` where there are several ranks.
class RankLines {
 public:
  RankLines(Flavour flavour, std::uint64_t ranks) : flavour_(flavour), ranks_(ranks) {}
  /// Whole lines of what was written up to now; what is of no rank stays as it is.
  std::string take(std::string_view bytes);
  /// What never ended in a line end.
  std::string rest();

 private:
  void take_tagged(std::string& lines);
  void add(std::string_view text, std::string& lines);
  std::string prefix(std::int64_t rank) const;

  Flavour flavour_;
  std::uint64_t ranks_;
  std::string bytes_;
  std::int64_t current_ = -1;  ///< whose text follows; -1: nobody's
  std::map<std::int64_t, std::string> begun_;
};

}  // namespace mlenv::mpi
