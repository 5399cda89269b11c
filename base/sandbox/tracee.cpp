#include "base/sandbox/tracee.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace mlenv::sandbox {
namespace {

constexpr std::size_t kPage = 4096;

/// An address in another process, as process_vm_readv(2) takes it.
iovec remote_range(std::uint64_t address, std::size_t size) {
  iovec range{nullptr, size};
  static_assert(sizeof range.iov_base == sizeof address);
  std::memcpy(&range.iov_base, &address, sizeof address);
  return range;
}

/// Paths through which a process names itself. Here they would name the supervisor.
struct Alias {
  std::string_view prefix;
  std::string_view below_process;
};
constexpr std::array kAliases{Alias{"/proc/self", ""},       Alias{"/proc/thread-self", ""},
                              Alias{"/dev/fd", "/fd"},       Alias{"/dev/stdin", "/fd/0"},
                              Alias{"/dev/stdout", "/fd/1"}, Alias{"/dev/stderr", "/fd/2"}};

template <typename... Args>
void set_path(Place& place, fmt::format_string<Args...> format, Args&&... args) {
  const auto end = fmt::format_to_n(place.path.data(), place.path.size() - 1, format,
                                    std::forward<Args>(args)...);
  place.path[std::min(end.size, place.path.size() - 1)] = '\0';
}

}  // namespace

bool Tracee::waits() const {
  return ::ioctl(listener_, SECCOMP_IOCTL_NOTIF_ID_VALID, &call_.id) == 0;
}

ssize_t Tracee::read_some(std::uint64_t address, ByteSpan out) const {
  const iovec local{out.data(), out.size()};
  const iovec remote = remote_range(address, out.size());
  const ssize_t count = ::process_vm_readv(static_cast<pid_t>(call_.pid), &local, 1, &remote, 1, 0);
  if (count >= 0 || (errno != EPERM && errno != ENOSYS)) return count;
  // Docker's default profile forbids the call and not the file, as of its release 20.10.
  const std::string name = fmt::format("{}/mem", call_.pid);
  const Fd memory{::openat(proc_, name.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!memory || !waits()) return -1;
  return ::pread(memory.get(), out.data(), out.size(), static_cast<off_t>(address));
}

bool Tracee::read(std::uint64_t address, ByteSpan out) const {
  const ssize_t count = read_some(address, out);
  return count == static_cast<ssize_t>(out.size()) && waits();
}

bool Tracee::read_string(std::uint64_t address, char* out, std::size_t limit) const {
  std::size_t got = 0;
  while (got < limit) {
    // A read stops at the first page that is not there, and the string may end just before it.
    const std::size_t count =
        std::min(limit - got, kPage - static_cast<std::size_t>((address + got) % kPage));
    const ssize_t done = read_some(address + got, {reinterpret_cast<std::byte*>(out + got), count});
    if (done <= 0) return false;
    if (std::memchr(out + got, 0, static_cast<std::size_t>(done)) != nullptr) return waits();
    got += static_cast<std::size_t>(done);
  }
  return false;
}

bool Tracee::write(std::uint64_t address, ByteView data) const {
  const std::string name = fmt::format("{}/mem", call_.pid);
  const Fd memory{::openat(proc_, name.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!memory || !waits()) return false;
  return ::pwrite(memory.get(), data.data(), data.size(), static_cast<off_t>(address)) ==
         static_cast<ssize_t>(data.size());
}

void Tracee::locate_descriptor(int descriptor, Place& place) const {
  place.base = proc_;
  place.follow = true;  // through the link in /proc, to the file itself
  set_path(place, "{}/fd/{}", call_.pid, descriptor);
}

void Tracee::locate_own(std::string_view rest, Place& place) const {
  const std::string copy{rest};
  place.base = proc_;
  set_path(place, "{}{}", call_.pid, copy);
}

int Tracee::locate(int folder, std::uint64_t path_address, bool empty_allowed, Place& place) const {
  std::array<char, PATH_MAX> text{};
  // A null path with AT_EMPTY_PATH is as good as an empty one since Linux 6.11.
  const bool absent = path_address == 0 && empty_allowed;
  if (!absent && !read_string(path_address, text.data(), text.size())) return EFAULT;
  const std::string_view path = text.data();
  if (path.empty()) {
    if (!empty_allowed) return ENOENT;
    if (folder != AT_FDCWD) {
      locate_descriptor(folder, place);
    } else {
      place.base = proc_;
      place.follow = true;
      set_path(place, "{}/cwd", call_.pid);
    }
    return 0;
  }
  if (path.front() != '/') {
    place.base = proc_;
    if (folder == AT_FDCWD) {
      set_path(place, "{}/cwd/{}", call_.pid, path);
    } else {
      set_path(place, "{}/fd/{}/{}", call_.pid, folder, path);
    }
    return 0;
  }
  for (const Alias& alias : kAliases) {
    if (!path.starts_with(alias.prefix)) continue;
    const std::string_view rest = path.substr(alias.prefix.size());
    if (!rest.empty() && rest.front() != '/') continue;
    locate_own(std::string(alias.below_process).append(rest), place);
    return 0;
  }
  place.base = AT_FDCWD;
  std::copy_n(text.data(), path.size() + 1, place.path.data());
  return 0;
}

Fd Tracee::root() const {
  const std::string name = fmt::format("{}/root", call_.pid);
  return Fd{::openat(proc_, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

}  // namespace mlenv::sandbox
