#pragma once
// Streams of a command of others, where ours is a terminal and the command gets none of its own.
// Whoever has a terminal open reads from it, whichever way it was meant, and may keep it: what the
// person types an hour later. So the command gets pipes, and we copy.
#include <poll.h>
#include <array>
#include <string>
#include <vector>

#include "base/handle.hpp"

namespace mlenv {

class TerminalPipes {
 public:
  /// Standard input, output and error to pass on, of which those that are no terminal stay.
  explicit TerminalPipes(const std::array<int, 3>& streams);

  /// What the command gets.
  std::vector<int> files() const;
  /// The command has its ends now: ours of them are closed.
  void handed_over();

  /// What to wait for, and to copy once it is there; a descriptor of -1 where there is nothing.
  std::array<pollfd, 3> watched() const;
  void copy(const std::array<pollfd, 3>& found);
  /// Copies what is in the pipes now. What the command left running may hold them open, and write
  /// on.
  void drain();

 private:
  void copy_input();

  std::array<int, 3> streams_;
  std::array<Fd, 3> theirs_;
  std::array<Fd, 3> ours_;
  std::string pending_;  ///< of the input, what the pipe had no place for
};

}  // namespace mlenv
