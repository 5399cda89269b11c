#pragma once
// NCCL's all-reduce over the GPUs of all nodes, as a part of a preflight: a job of its own, whose
// ranks are mlenv-gpu-probe (runner/probe, `--across`), one on each node in the image's container,
// with the variables and devices that the job's ranks would have. Pure: what they write goes in,
// what it means comes out.
#include <optional>
#include <string>
#include <vector>

#include "runner/job/preflight.hpp"

namespace mlenv::job {

/// The name of the program in the project's folder, where those words look for it.
inline constexpr const char* kNcclProgram = "mlenv-gpu-probe";

/// The words of each node's process. The vector is as large as the slowest of the links carries in
/// about half a second, 1 to 256 MiB; 256 MiB where all nodes have InfiniBand.
std::vector<std::string> nccl_words(const Preflight& links);

/// What the ranks of that job write.
class NcclLines {
 public:
  explicit NcclLines(std::size_t nodes) : answers_(nodes) {}

  /// A line as it lies in a rank's log (record/run_log.hpp).
  void line(std::uint64_t rank, const std::string& line);

  /// `names`: of the nodes, by rank; `failure`: why the job failed, empty where it did not. A
  /// node's own answer explains more, and comes first.
  PreflightNccl result(const std::vector<std::string>& names, const std::string& failure) const;

 private:
  /// Of one rank, as far as it came.
  struct Answer {
    std::string pending{};  ///< of a line that goes on
    std::string text{};     ///< mlenv.gpu-probe/1; empty: none came
    std::string last{};     ///< the newest other line
  };
  void take(Answer& answer, const std::string& text);

  std::vector<Answer> answers_;
  std::string network_;
};

/// There is nothing to measure it with, and why.
PreflightNccl not_measured(std::string why);

/// Adds what was found to a judged preflight: its sentence, findings and verdict. What the nodes'
/// network can carry is expected: over InfiniBand all active ports of the node that has the
/// slowest, else the slowest interface, or where that is not known the slowest link. Less than half
/// of it (kSlowShare) is slow. Nodes that share a machine are expected nothing of.
void add_nccl(Preflight& preflight, PreflightNccl nccl);

}  // namespace mlenv::job
