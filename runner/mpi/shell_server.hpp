#pragma once
// The end of a remote shell at which commands run: in each container of an MPI job, for those who
// know the job's secret: those who have not shown so are few at a time, may say little, and are
// turned away after seconds. It ends with its owner, and every command with it.
#include <poll.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/mpi/hosts.hpp"
#include "runner/mpi/shell_session.hpp"

namespace mlenv::mpi {

class ShellServer {
 public:
  /// Listens. Throws `port-taken`.
  ShellServer(const Host& own, std::string secret);
  ShellServer(const ShellServer&) = delete;
  ShellServer& operator=(const ShellServer&) = delete;
  ~ShellServer() = default;

  /// Descriptors to wait for, appended; then the same ones, as poll(2) left them.
  void add_to(std::vector<pollfd>& fds) const;
  void hear(const pollfd* fds);
  /// No command runs.
  bool idle() const { return sessions_.empty(); }
  /// The first rank of this node that was reported to have failed.
  const std::optional<RankFailure>& failure() const { return failure_; }

 private:
  bool full() const;

  std::string secret_;
  Fd listener_;
  std::vector<std::unique_ptr<ShellSession>> sessions_;
  std::optional<RankFailure> failure_;
};

}  // namespace mlenv::mpi
