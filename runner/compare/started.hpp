#pragma once
// A process that is measured. It has a session of its own, as a container's have: where the kernel
// shares the processor out by sessions (autogroups, sched(7)), the bare host then gets the same
// share, whatever else the person's terminal does and however nice it is. Ended when this goes, as
// its minder ends things.
#include <chrono>
#include <optional>

#include "runner/compare/minder.hpp"

namespace mlenv::compare {

class Started {
 public:
  /// `minder` outlives it. Throws `cannot-start`.
  Started(const Minder& minder, const Command& command);
  Started(Started&& other) noexcept;
  Started& operator=(Started&&) = delete;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started();

  std::chrono::steady_clock::time_point begun() const { return begun_; }
  /// Readable once it has ended.
  int ended_fd() const { return ended_.get(); }
  /// nullopt: it has not ended by then.
  std::optional<Exit> wait(std::chrono::milliseconds deadline);

 private:
  bool has_ended(std::chrono::milliseconds deadline) const;

  const Minder* minder_;
  pid_t pid_ = -1;  ///< -1: waited for
  std::chrono::steady_clock::time_point begun_;
  Fd ended_;  ///< readable at its end
};

}  // namespace mlenv::compare
