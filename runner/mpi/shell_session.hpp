#pragma once
// A connection to a ShellServer: one command, or one report.
#include <poll.h>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/process.hpp"
#include "runner/mpi/frames.hpp"

namespace mlenv::mpi {

class ShellSession {
 public:
  ShellSession(Fd connection, std::string_view secret);

  /// Always so many.
  static constexpr std::size_t kDescriptors = 4;
  void add_to(std::vector<pollfd>& fds) const;
  void hear(const pollfd* fds);
  void tick();
  /// Whoever it is has not shown yet that it knows the secret.
  bool stranger() const { return !known_; }
  /// Nothing is left of it. Its command is killed with it where whoever asked is gone.
  bool over() const { return over_; }
  std::optional<RankFailure> take_report() { return std::exchange(report_, std::nullopt); }

 private:
  void take_frames();
  void on(const Frame& frame);
  void ask(const Frame& frame);
  void start(const std::string& command);
  void pass_on(Fd& from, FrameKind kind);
  void feed();
  void say(FrameKind kind, std::string_view payload);
  void send();

  Fd connection_;
  std::string secret_;
  std::string nonce_ = fresh_secret();
  FrameReader reader_;
  std::string out_;  ///< for the connection
  std::string in_;   ///< for the command
  bool known_ = false;
  bool input_over_ = false;
  bool last_said_ = false;  ///< when `out_` is sent it is over
  bool over_ = false;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::optional<Child> child_;
  Fd stdin_;
  Fd stdout_;
  Fd stderr_;
  std::optional<RankFailure> report_;
};

}  // namespace mlenv::mpi
