#include "base/sandbox/tracee.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <vector>

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

/// What RESOLVE_NO_MAGICLINKS does, by one step after the other.
class PartByPart {
 public:
  PartByPart(int base, std::string_view path, bool follow)
      : base_(base), folder_(path.ends_with('/')), follow_(follow || folder_) {
    add(path);
  }

  /// 0 or an errno.
  int open(Fd& file) {
    if (!at_) at_ = Fd{::fcntl(base_, F_DUPFD_CLOEXEC, 0)};
    while (at_ && !rest_.empty()) {
      const std::string part = std::move(rest_.front());
      rest_.pop_front();
      if (const int error = step(part, rest_.empty()); error != 0) return error;
    }
    struct stat status {};
    if (!at_ || ::fstat(at_.get(), &status) != 0) return errno;
    if (folder_ && !S_ISDIR(status.st_mode)) return ENOTDIR;
    file = std::move(at_);
    return 0;
  }

 private:
  static constexpr int kMostLinks = 40;   // path_resolution(7)
  static constexpr ino_t kTopOfProc = 1;  // PROC_ROOT_INO: `self` and `mounts` there are names

  void add(std::string_view path) {
    if (path.starts_with('/')) at_ = Fd{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
    std::vector<std::string> parts;
    while (!path.empty()) {
      const std::string_view part = path.substr(0, path.find('/'));
      if (!part.empty() && part != ".") parts.emplace_back(part);
      path.remove_prefix(std::min(path.size(), part.size() + 1));
    }
    rest_.insert(rest_.begin(), parts.begin(), parts.end());
  }

  int step(const std::string& part, bool last) {
    Fd next{::openat(at_.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC)};
    struct stat status {};
    if (!next || ::fstat(next.get(), &status) != 0) return errno;
    if (!S_ISLNK(status.st_mode) || (last && !follow_)) {
      at_ = std::move(next);
      return 0;
    }
    if (++links_ > kMostLinks || is_magic(next)) return ELOOP;
    std::array<char, PATH_MAX> target{};
    const ssize_t size = ::readlinkat(next.get(), "", target.data(), target.size());
    if (size < 0) return errno;
    add({target.data(), static_cast<std::size_t>(size)});
    return 0;
  }

  bool is_magic(const Fd& link) const {
    struct statfs system {};
    struct stat above {};
    if (::fstatfs(link.get(), &system) != 0 || ::fstat(at_.get(), &above) != 0) return true;
    return system.f_type == PROC_SUPER_MAGIC && above.st_ino != kTopOfProc;
  }

  int base_;
  bool folder_;
  bool follow_;
  Fd at_;
  std::deque<std::string> rest_;
  int links_ = 0;
};

}  // namespace

int Place::open(Fd& file) const {
  if (path.front() == '\0') {
    file = Fd{::fcntl(base, F_DUPFD_CLOEXEC, 0)};
    return file ? 0 : errno;
  }
  if (const std::optional<int> error = open_at_once(file)) return *error;
  PartByPart walk{base, path.data(), follow};
  return walk.open(file);
}

/// nullopt: this kernel (before Linux 5.6) has no openat2(2), or a filter of the container around
/// us refuses it.
std::optional<int> Place::open_at_once(Fd& file) const {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  how.resolve = RESOLVE_NO_MAGICLINKS;
  file = Fd{static_cast<int>(::syscall(SYS_openat2, base, path.data(), &how, sizeof how))};
  if (!file && (errno == ENOSYS || errno == EPERM)) return std::nullopt;
  return file ? 0 : errno;
}

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

/// `link` of the process's folder in /proc is followed, `rest` goes on from there.
int Tracee::start_from(std::string_view link, std::string_view rest, Place& place) const {
  const std::string name = fmt::format("{}/{}", call_.pid, link);
  place.own = Fd{::openat(proc_, name.c_str(), O_PATH | O_CLOEXEC)};
  if (!place.own) return errno;
  place.base = place.own.get();
  set_path(place, "{}", rest);
  return 0;
}

int Tracee::locate_descriptor(int descriptor, Place& place) const {
  place.follow = true;  // through the link in /proc, to the file itself
  const int error = start_from(fmt::format("fd/{}", descriptor), "", place);
  return error == ENOENT ? EBADF : error;
}

/// Below /proc/self: by one of its own links, or an entry that is none.
int Tracee::locate_own(std::string_view rest, Place& place) const {
  while (rest.starts_with('/')) rest.remove_prefix(1);
  std::size_t end = rest.find('/');
  if (rest.starts_with("fd/") && end != std::string_view::npos) end = rest.find('/', end + 1);
  const std::string_view link = rest.substr(0, end);
  const bool is_link = link == "cwd" || link == "root" || link == "exe" ||
                       (link.starts_with("fd/") && link.size() > 3);
  std::string_view below = end == std::string_view::npos ? "" : rest.substr(end + 1);
  while (below.starts_with('/')) below.remove_prefix(1);
  if (is_link && (place.follow || !below.empty())) return start_from(link, below, place);
  place.base = proc_;
  set_path(place, "{}/{}", call_.pid, rest);
  return 0;
}

int Tracee::locate(int folder, std::uint64_t path_address, bool empty_allowed, Place& place) const {
  std::array<char, PATH_MAX> text{};
  // A null path with AT_EMPTY_PATH is as good as an empty one since Linux 6.11.
  const bool absent = path_address == 0 && empty_allowed;
  if (!absent && !read_string(path_address, text.data(), text.size())) return EFAULT;
  const std::string_view path = text.data();
  if (path.empty()) {
    if (!empty_allowed) return ENOENT;
    if (folder != AT_FDCWD) return locate_descriptor(folder, place);
    place.follow = true;
    return start_from("cwd", "", place);
  }
  if (path.front() != '/') {
    if (folder == AT_FDCWD) return start_from("cwd", path, place);
    const int error = start_from(fmt::format("fd/{}", folder), path, place);
    return error == ENOENT ? EBADF : error;
  }
  for (const Alias& alias : kAliases) {
    if (!path.starts_with(alias.prefix)) continue;
    const std::string_view rest = path.substr(alias.prefix.size());
    if (!rest.empty() && rest.front() != '/') continue;
    return locate_own(std::string(alias.below_process).append(rest), place);
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
