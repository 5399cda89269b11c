#include "base/files_beneath.hpp"

#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

namespace mlenv {
namespace {

constexpr int kFileFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
constexpr int kFolderFlags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// Where openat2 is missing (before Linux 5.6, or an old seccomp profile).
Fd walk(int folder, const std::string& path) {
  Fd at;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") {
      errno = EXDEV;
      return {};
    }
    const bool last = end == path.size();
    Fd next{::openat(at ? at.get() : folder, part.c_str(), last ? kFileFlags : kFolderFlags)};
    if (!next || last) return next;
    at = std::move(next);
    begin = end + 1;
  }
  errno = EINVAL;
  return {};
}

Fd open_without_links(int folder, const std::string& path) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kFileFlags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  while (true) {
    Fd fd{static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how))};
    if (fd || (errno != EAGAIN && errno != EINTR && errno != ENOSYS && errno != EPERM)) return fd;
    if (errno == ENOSYS || errno == EPERM) return walk(folder, path);
  }
}

}  // namespace

Fd open_folder(const fs::path& path) { return open_file(path, O_PATH | O_DIRECTORY); }

Fd open_file_beneath(int folder, const std::string& path) {
  Fd file = open_without_links(folder, path);
  struct stat status {};
  if (!file || (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode))) return file;
  errno = EINVAL;
  return {};
}

std::optional<std::string> read_file_beneath(int folder, const std::string& path,
                                             std::uint64_t limit) {
  const Fd file = open_file_beneath(folder, path);
  if (!file) return std::nullopt;
  FdSource source{file.get()};
  return read_all(source, limit);
}

}  // namespace mlenv
