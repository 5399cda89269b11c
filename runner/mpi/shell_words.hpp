#pragma once
// The command line of a remote shell, as programs that start others write it. Plain.
#include <string>
#include <vector>

namespace mlenv::mpi {

/// `ssh [OPTION…] [USER@]HOST COMMAND…`
struct ShellWords {
  std::string host;
  std::string command;  ///< the words with blanks between, as ssh sends them
  bool no_input = false;
  friend bool operator==(const ShellWords&, const ShellWords&) = default;
};

/// Options are ssh's, and mean nothing here but `-n`: there is one user, one key and one port.
/// Throws `usage` where there is no host or no command.
ShellWords parse_shell_words(const std::vector<std::string>& words);

}  // namespace mlenv::mpi
