#include "runner/job/beater.hpp"

#include <algorithm>
#include <csignal>
#include <system_error>

#include "base/log.hpp"

namespace mlenv::job {
namespace {

/// Threads that are started meanwhile get no signals: those are for the loop to hear.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Beater::Beater(std::chrono::milliseconds beat, std::chrono::milliseconds most)
    : beat_(beat), most_(most) {}

Beater::~Beater() {
  {
    const std::lock_guard lock{mutex_};
    ending_ = true;
  }
  ends_.notify_all();
  if (thread_) thread_->join();
}

void Beater::add(Channel& channel) {
  const std::lock_guard lock{mutex_};
  if (std::find(channels_.begin(), channels_.end(), &channel) != channels_.end()) return;
  channels_.push_back(&channel);
  if (thread_) return;
  try {
    const WithoutSignals without;
    thread_.emplace([this] { serve(); });
  } catch (const std::system_error& error) {
    log::debug("no thread for beats: {}", error.what());
  }
}

void Beater::remove(Channel& channel) {
  const std::lock_guard lock{mutex_};
  std::erase(channels_, &channel);
}

void Beater::turn() {
  const std::lock_guard lock{mutex_};
  turned_ = Clock::now();
}

bool Beater::speaks(Clock::duration held_up, std::chrono::milliseconds beat,
                    std::chrono::milliseconds most) {
  return held_up >= beat && held_up < most;
}

void Beater::serve() {
  std::unique_lock lock{mutex_};
  while (!ends_.wait_for(lock, beat_, [this] { return ending_; })) {
    if (!speaks(Clock::now() - turned_, beat_, most_)) continue;
    for (Channel* const channel : channels_) channel->beat(beat_);
  }
}

}  // namespace mlenv::job
