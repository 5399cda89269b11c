#pragma once
// All of a stream's next bytes, whatever pieces they come in. For mlenv and its keeper, which has
// no library of ours.
#include <unistd.h>
#include <cerrno>
#include <cstddef>

namespace mlenv::keeper {

/// False when the other side is gone.
inline bool read_whole(int fd, char* to, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = ::read(fd, to, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

/// False, with errno, where it cannot.
inline bool write_whole(int fd, const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t count = ::write(fd, from, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    from += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace mlenv::keeper
