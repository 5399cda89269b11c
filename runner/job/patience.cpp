#include "runner/job/patience.hpp"

namespace mlenv::job {

std::optional<std::chrono::seconds> Patience::ends(const std::string& what, Clock::time_point now) {
  constexpr std::chrono::seconds kFirst{15};
  constexpr std::chrono::seconds kAgain{60};
  if (what != what_) {
    what_ = what;
    since_ = now;
    next_ = now + kFirst;
  }
  if (what.empty() || now < next_) return std::nullopt;
  next_ = now + kAgain;
  return std::chrono::duration_cast<std::chrono::seconds>(now - since_);
}

}  // namespace mlenv::job
