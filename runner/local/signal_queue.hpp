#pragma once
// Signals that reach this process, as something to read: for those who drive several children.
#include <chrono>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "base/handle.hpp"

namespace mlenv {

/// From its making to its end `kForwarded` (signals.hpp) are kept for next(), but for those that
/// were ignored before (nohup), which stay so. Children are started with none blocked
/// (base/process.hpp).
class SignalQueue {
 public:
  /// `none`: signals wait until somebody takes them. `ends`: where two that end programs have come
  /// and one has waited for `held_up`, the process ends at once, with 128 and the number of the
  /// first: its loop is held up (by a disk that stalls, say), and a person has asked twice.
  enum class Impatience { none, ends };

  explicit SignalQueue(Impatience impatience = Impatience::none,
                       std::chrono::milliseconds held_up = std::chrono::seconds{5});
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  ~SignalQueue();
  int fd() const { return impatient_ ? impatient_->ready.get() : fd_.get(); }
  /// 0: there is none.
  int next() const;

 private:
  /// A thread that takes signals whatever the loop does.
  struct Impatient {
    Fd ready;  ///< an eventfd: there are some
    Fd over;   ///< another one: the thread is to end
    std::mutex mutex;
    std::deque<int> waiting;
    std::thread thread;
  };
  void look_on() const;

  sigset_t before_{};
  std::chrono::milliseconds held_up_;
  Fd fd_;
  mutable std::optional<Impatient> impatient_;
};

}  // namespace mlenv
