#pragma once
// A process in a session of its own, as a container's are: where the kernel shares the processor
// out by sessions (autogroups, sched(7)), the bare host then gets the same share, whatever else
// the person's terminal does and however nice it is. Killed with its group when this goes.
#include <chrono>
#include <optional>

#include "base/process.hpp"

namespace mlenv::compare {

class Started {
 public:
  /// Of `command` argv, env, folder and the three streams. Throws `cannot-start`.
  explicit Started(const Command& command);
  Started(Started&& other) noexcept;
  Started& operator=(Started&&) = delete;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started();

  /// nullopt: it has not ended by then.
  std::optional<Exit> wait(std::chrono::milliseconds deadline);

 private:
  pid_t pid_ = -1;
  Fd ended_;  ///< readable at its end
};

}  // namespace mlenv::compare
