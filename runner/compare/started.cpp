#include "runner/compare/started.hpp"

#include <poll.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/pidfd.hpp"
#include "runner/compare/minder_words.hpp"

namespace mlenv::compare {

Started::Started(const Minder& minder, const Command& command) : minder_(&minder) {
  const Minder::Begun begun = minder.start(command);
  pid_ = begun.pid;
  begun_ = begun.at;
  ended_ = open_pidfd(pid_);  // the minder has not waited for it
}

Started::Started(Started&& other) noexcept
    : minder_(other.minder_),
      pid_(std::exchange(other.pid_, -1)),
      begun_(other.begun_),
      ended_(std::move(other.ended_)) {}

Started::~Started() {
  if (pid_ < 0) return;
  if (minder_->ending() == Ending::ask) {
    ::kill(pid_, SIGTERM);
    (void)has_ended(minding::kMoment);
  }
  (void)minder_->end(pid_);
}

bool Started::has_ended(std::chrono::milliseconds deadline) const {
  pollfd fd{ended_.get(), POLLIN, 0};
  constexpr std::int64_t kMost = 1'000'000'000;
  const auto left = std::clamp<std::int64_t>(deadline.count(), 0, kMost);
  int ready = 0;
  do {
    ready = ::poll(&fd, 1, static_cast<int>(left));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::optional<Exit> Started::wait(std::chrono::milliseconds deadline) {
  if (!has_ended(deadline)) return std::nullopt;
  return minder_->end(std::exchange(pid_, -1));
}

}  // namespace mlenv::compare
