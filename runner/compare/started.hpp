#pragma once
// A process in a session of its own, as a container's are: where the kernel shares the processor
// out by sessions (autogroups, sched(7)), the bare host then gets the same share, whatever else
// the person's terminal does and however nice it is. Ended when this goes.
#include <chrono>
#include <optional>

#include "base/process.hpp"

namespace mlenv::compare {

enum class Ending {
  kill,  ///< with its group, also where it ended by itself and left some of it behind
  ask,   ///< by SIGTERM, and killed where it has not ended a moment later: it may take away first
         ///< what it made
};

class Started {
 public:
  /// Of `command` argv, env, folder and the three streams. Throws `cannot-start`.
  Started(const Command& command, Ending ending);
  Started(Started&& other) noexcept;
  Started& operator=(Started&&) = delete;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started();

  /// nullopt: it has not ended by then.
  std::optional<Exit> wait(std::chrono::milliseconds deadline);

 private:
  bool has_ended(std::chrono::milliseconds deadline) const;

  pid_t pid_ = -1;
  Ending ending_;
  Fd ended_;  ///< readable at its end
};

}  // namespace mlenv::compare
