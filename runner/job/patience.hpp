#pragma once
// When to say that something is waited for: after a while, and again now and then.
#include <chrono>
#include <optional>
#include <string>

namespace mlenv::job {

class Patience {
 public:
  using Clock = std::chrono::steady_clock;
  /// `what` is waited for now; empty: nothing. How long the same has been waited for, where that is
  /// to be said: after 15 s, then each minute.
  std::optional<std::chrono::seconds> ends(const std::string& what, Clock::time_point now);

 private:
  std::string what_;
  Clock::time_point since_{};
  Clock::time_point next_{};
};

}  // namespace mlenv::job
