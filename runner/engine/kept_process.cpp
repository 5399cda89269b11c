#include "runner/engine/kept_process.hpp"

#include <unistd.h>

#include "runner/local/terminal.hpp"

namespace mlenv {

KeptProcess kept_process(const Bundle& bundle, const LocalRun::Fds& fds) {
  KeptProcess process;
  process.user = bundle.user;
  process.workdir = bundle.workdir;
  process.make_workdir = true;
  process.argv = bundle.argv;
  process.env = bundle.env;
  process.terminal = bundle.terminal;
  if (process.terminal) {
    const winsize size = terminal_size();
    process.rows = size.ws_row;
    process.columns = size.ws_col;
    return process;
  }
  process.streams = {STDIN_FILENO, fds.out >= 0 ? fds.out : STDOUT_FILENO,
                     fds.err >= 0 ? fds.err : STDERR_FILENO};
  return process;
}

}  // namespace mlenv
