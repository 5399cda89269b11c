#pragma once
// What a program of ours is started with, put in order before it opens anything, and what its own
// processes are given.
//
// - 0, 1 and 2 are open: else the first file opened would be a container's standard stream, and
//   open for writing.
// - Above them nothing of the caller's is passed on: a lock, a pipe or a folder of the shell would
//   reach a build step or a container, or stay open as long as a run in the background.
//   `begin_program` (base/program_start.hpp) closes it, but for a command line that names one
//   (`--env-file /dev/fd/63`, which is how a shell writes `<(…)`): there all are close-on-exec.
// - `spawn` (base/spawn.hpp) passes on the standard streams and what a Command names, closing all
//   others, also those that a library opened without O_CLOEXEC. Whoever calls execve(2) itself, and
//   whoever forks a process that outlives its parent, uses the functions below.
//
// Nothing but system calls and no exceptions, for programs without our libraries, and after
// fork(2).
#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>

namespace mlenv {

inline constexpr int kFirstBeyondStreams = 3;

namespace descriptors {

/// Where close_range(2) is forbidden, as by an old container engine's filter.
template <typename Do>
void for_each_open(int first, Do&& act) noexcept {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) {
    constexpr int kEnough = 65536;
    for (int fd = first; fd < kEnough; ++fd) act(fd);
    return;
  }
  const int own = ::dirfd(folder);
  while (const dirent* const entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe): own
    const int fd = std::atoi(entry->d_name);               // NOLINT: `.` is 0
    if (fd >= first && fd != own) act(fd);
  }
  ::closedir(folder);
}

inline bool close_range_from(int first, unsigned flags) noexcept {
  return ::syscall(SYS_close_range, static_cast<unsigned>(first), ~0U, flags) == 0;
}

}  // namespace descriptors

/// Closes every descriptor from `first` on.
inline void close_from(int first) noexcept {
  if (descriptors::close_range_from(first, 0)) return;
  descriptors::for_each_open(first, [](int fd) { ::close(fd); });
}

/// No program started from here on has one from `first` on, unless it is handed over by number.
inline void close_on_exec_from(int first) noexcept {
  if (descriptors::close_range_from(first, CLOSE_RANGE_CLOEXEC)) return;
  descriptors::for_each_open(first, [](int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); });
}

/// Opens what is missing of 0, 1 and 2. What is read there ends at once, what is said on standard
/// error goes nowhere; an answer on standard output fails (EBADF), as it would without us. False
/// without a /dev/null: such a program may open nothing.
[[nodiscard]] inline bool standard_streams() noexcept {
  constexpr int kStreams = 3;
  for (int fd = 0; fd < kStreams; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest number is taken: those below are open.
    if (::open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY) != fd) return false;
  }
  return true;
}

}  // namespace mlenv
