#pragma once
// The person's terminal and the master of a container's.
#include <sys/ioctl.h>
#include <sys/types.h>
#include <termios.h>

#include "base/handle.hpp"

namespace mlenv {

/// Our terminal, its keys passed on as they are typed; as it was when this ends.
class RawTerminal {
 public:
  RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;
  ~RawTerminal();

 private:
  termios before_{};
  bool engaged_;
};

/// Zeros where standard input is none.
winsize terminal_size();

/// Gives `master` the size of our terminal.
void follow_size(int master);

/// Copies what is there; false when one side is at its end.
bool copy_some(int from, int to);

/// Both ways between our terminal, raw meanwhile, and `master`, whose size follows ours, until
/// nobody has the other side of `master` open.
void relay_terminal(const Fd& master);

/// The same in a process of its own, which keeps nothing else of ours open and dies with us. The
/// destructor waits until all that was written has been shown; `master` stays open till then.
class TerminalRelay {
 public:
  explicit TerminalRelay(const Fd& master);
  TerminalRelay(const TerminalRelay&) = delete;
  TerminalRelay& operator=(const TerminalRelay&) = delete;
  ~TerminalRelay();

 private:
  int master_;
  pid_t pid_ = -1;
};

}  // namespace mlenv
