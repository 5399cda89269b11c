#pragma once
// Processes that each serve one further command of a run: copies of the stage, which has one thread
// and may fork.
#include <functional>
#include <vector>

#include "runner/local/control.hpp"

namespace mlenv {

/// The streams and the way back of one command.
struct AskedCommand {
  ExecRequest request;
  std::vector<Fd> files;  ///< its standard input, output and error; none with a terminal
  Fd connection;
  /// Whether the files are those that the request needs.
  bool is_whole() const;
};

class ServingProcesses {
 public:
  ServingProcesses() = default;
  ServingProcesses(const ServingProcesses&) = delete;
  ServingProcesses& operator=(const ServingProcesses&) = delete;
  /// Waits for them: what they serve is gone by then, so that they end.
  ~ServingProcesses();

  /// A new one, which ends when `serve` returns. Where there can be none, whoever asks over
  /// `connection` is told.
  void start(int connection, const std::function<void()>& serve);

 private:
  std::vector<pid_t> pids_;
};

}  // namespace mlenv
