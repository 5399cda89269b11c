#include "base/small_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv {
namespace {

Error too_large(const fs::path& path, std::uint64_t limit) {
  return failure("too-large", "`{}` is larger than the {} bytes that such a file may have",
                 path.string(), limit);
}

std::string_view kind_of(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISLNK(mode)) return "a link";
  return "no regular file";
}

/// At most one byte more than the limit, so that a file which grows meanwhile is noticed.
std::string read_up_to(const Fd& fd, const fs::path& path, std::uint64_t limit,
                       std::uint64_t expected) {
  FdSource source{fd.get()};
  std::string text;
  text.reserve(std::min(limit, expected) + 1);
  std::array<std::byte, std::size_t{64} << 10U> buffer{};
  while (const std::size_t count = source.read(buffer)) {
    if (text.size() + count > limit) throw too_large(path, limit);
    text += as_text(ByteView(buffer).first(count));
  }
  return text;
}

/// Its size; 0 also for the null device.
std::uint64_t judge_opened(const Fd& fd, const fs::path& path, std::uint64_t limit) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  // It says nothing: `NETRC=/dev/null`, or a link to it that masks somebody's settings.
  const dev_t null_device = makedev(1, 3);
  if (S_ISCHR(status.st_mode) && status.st_rdev == null_device) return 0;
  if (!S_ISREG(status.st_mode)) throw not_a_file(path, kind_of(status.st_mode));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > limit) throw too_large(path, limit);
  return size;
}

std::string read_opened(const Fd& fd, const fs::path& path, std::uint64_t limit) {
  const std::uint64_t size = judge_opened(fd, path, limit);
  return read_up_to(fd, path, limit, size);
}

/// Empty, and errno. Without O_NONBLOCK a pipe that nobody writes to is not even opened; a socket
/// never is (ENXIO, open(2)).
Fd try_open(const fs::path& path) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  struct stat status {};
  if (!fd && errno == ENXIO && ::stat(path.c_str(), &status) == 0) {
    throw not_a_file(path, kind_of(status.st_mode));
  }
  return fd;
}

Fd opened(const fs::path& path) {
  Fd fd = try_open(path);
  if (!fd) throw os_error(errno, "cannot open `{}`", path.string());
  return fd;
}

}  // namespace

Error not_a_file(const fs::path& path, std::string_view kind) {
  return failure("not-a-file", "`{}` is {}, not a file", path.string(), kind)
      .hint("put a regular file there, or take it away");
}

std::string read_small_file(const fs::path& path, std::uint64_t limit) {
  const Fd fd = opened(path);
  return while_doing("reading `" + path.string() + "`",
                     [&] { return read_opened(fd, path, limit); });
}

std::optional<std::string> read_small_file_if_exists(const fs::path& path, std::uint64_t limit) {
  const Fd fd = try_open(path);
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw os_error(errno, "cannot open `{}`", path.string());
  }
  return read_opened(fd, path, limit);
}

void check_small_file(const fs::path& path, std::uint64_t limit) {
  const Fd fd = opened(path);
  judge_opened(fd, path, limit);
}

Fd open_to_write(const fs::path& path, int flags, mode_t mode) {
  constexpr int kAsItIs = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Fd fd{::open(path.c_str(), kAsItIs | flags, mode)};
  const int error = errno;
  struct stat status {};
  const bool is_seen = fd ? ::fstat(fd.get(), &status) == 0 : ::lstat(path.c_str(), &status) == 0;
  if (is_seen && !S_ISREG(status.st_mode)) throw not_a_file(path, kind_of(status.st_mode));
  if (!fd) throw os_error(error, "cannot open `{}`", path.string());
  return fd;
}

std::string read_named_file(const fs::path& path, std::uint64_t limit) {
  const std::string place = path.string();
  const bool own =
      place == "/dev/stdin" || place.starts_with("/dev/fd/") || place.starts_with("/proc/self/fd/");
  struct stat status {};
  const bool pipe = own && ::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  if (!pipe) return read_small_file(path, limit);
  const Fd fd = open_file(path);
  return while_doing("reading `" + path.string() + "`",
                     [&] { return read_up_to(fd, path, limit, 0); });
}

}  // namespace mlenv
