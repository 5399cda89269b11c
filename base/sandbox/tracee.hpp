#pragma once
// A stopped system call of a supervised process: its memory, and the files that its arguments name
// as that process sees them.
#include <fcntl.h>
#include <array>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <linux/seccomp.h>

#include "base/bytes.hpp"
#include "base/handle.hpp"

namespace mlenv::sandbox {

/// A file, as a descriptor and a path from it. The path is the process's own words: whoever follows
/// it must take no magic links of /proc (proc(5)), which would lead to what the supervisor itself
/// has open. `Place::open` does not.
struct Place {
  Fd own;         ///< the process's own folder or file, where the path starts from one
  int base = -1;  ///< else; AT_FDCWD: the root that both have
  std::array<char, PATH_MAX + 64> path{};  ///< empty: `own` itself
  bool follow = true;

  /// As O_PATH; 0 or an errno.
  int open(Fd& file) const;

 private:
  std::optional<int> open_at_once(Fd& file) const;
};

/// What the supervisor needs to name a process's files: /proc of its process namespace.
class Tracee {
 public:
  Tracee(int listener, int proc, const seccomp_notif& call)
      : listener_(listener), proc_(proc), call_(call) {}

  std::uint64_t argument(std::size_t index) const { return call_.data.args[index]; }
  int number() const { return call_.data.nr; }

  /// Whether the process still waits for an answer: if not, its id may already be another's.
  bool waits() const;

  /// A string of at most `limit - 1` bytes into `out`; false when it cannot be read or is longer.
  bool read_string(std::uint64_t address, char* out, std::size_t limit) const;
  bool read(std::uint64_t address, ByteSpan out) const;
  /// Through a descriptor that is bound to the process, so that the bytes cannot reach another.
  bool write(std::uint64_t address, ByteView data) const;

  /// The file that a path argument names; 0 or an errno. `folder` is a descriptor of the process or
  /// AT_FDCWD. An empty path is the folder itself where `empty_allowed`.
  int locate(int folder, std::uint64_t path_address, bool empty_allowed, Place& place) const;
  /// The file behind a descriptor of the process; 0 or an errno.
  int locate_descriptor(int descriptor, Place& place) const;
  /// The process's root folder (O_PATH).
  Fd root() const;

 private:
  ssize_t read_some(std::uint64_t address, ByteSpan out) const;
  int locate_own(std::string_view rest, Place& place) const;
  int start_from(std::string_view link, std::string_view rest, Place& place) const;
  int listener_;
  int proc_;
  const seccomp_notif& call_;
};

}  // namespace mlenv::sandbox
