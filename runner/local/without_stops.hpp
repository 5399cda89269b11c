#pragma once
// For who is looked at by others, and taken for dead while stopped.
#include <csignal>

namespace mlenv {

/// Ctrl-Z does nothing while it lives. Children are as they would be (a handler does not outlive
/// exec).
class WithoutStops {
 public:
  WithoutStops() {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART;
    ::sigaction(SIGTSTP, &nothing, &before_);
  }
  WithoutStops(const WithoutStops&) = delete;
  WithoutStops& operator=(const WithoutStops&) = delete;
  ~WithoutStops() { ::sigaction(SIGTSTP, &before_, nullptr); }

 private:
  struct sigaction before_ {};
};

}  // namespace mlenv
