#pragma once
// Signals that reach this process, as something to read: for those who drive several children.
#include <csignal>

#include "base/handle.hpp"

namespace mlenv {

/// From its making to its end `kForwarded` (signals.hpp) are kept for next(), but for those that
/// were ignored before (nohup), which stay so. Children are started with none blocked
/// (base/process.hpp).
class SignalQueue {
 public:
  SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  ~SignalQueue();
  int fd() const { return fd_.get(); }
  /// 0: there is none.
  int next() const;

 private:
  sigset_t before_{};
  Fd fd_;
};

}  // namespace mlenv
