#include "base/pidfd.hpp"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/spawn.hpp"

namespace mlenv {

Fd open_pidfd(pid_t pid) {
  Fd fd{static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))};
  if (!fd) throw os_error(errno, "cannot watch process {}", pid);
  return fd;
}

Exit reap(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw os_error(errno, "cannot wait for process {}", pid);
  }
  return decoded_exit(status);
}

}  // namespace mlenv
