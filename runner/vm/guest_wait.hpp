#pragma once
// A wait for something that a guest is to answer: it has a limit, and whoever wanted the run may
// end it. A guest is not ours: it may hang as soon as it has said hello.
#include <array>
#include <chrono>

namespace mlenv {

/// For whom a guest is waited for; -1: for nobody in particular.
struct GuestWatch {
  int socket = -1;   ///< mlenv's: when its other end closes there is nobody to run a guest for
  int signals = -1;  ///< a signalfd, which is not read here: what waits in it is the command's
};

struct GuestWait {
  int answer = -1;                   ///< readable: it is there
  std::array<int, 2> ended{-1, -1};  ///< one is readable: no answer can come any more
  GuestWatch watch{};
  std::chrono::milliseconds patience{0};
};

enum class Heard { answer, nothing, end, signal, nobody_waits };

/// What comes first. Of signals those count that end programs; others wait on for the command.
Heard wait_for_guest(const GuestWait& wait);

/// A signal that waits for this process, blocked, and would end a program; 0: there is none.
int waiting_end_signal();

}  // namespace mlenv
