#include "base/files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <random>

#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/folder_entries.hpp"
#include "base/lock_wait.hpp"
#include "base/small_file.hpp"
#include "base/temporary_name.hpp"

namespace mlenv {
namespace {

std::string random_name() {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::string name;
  for (int i = 0; i < 12; ++i) name.push_back(kAlphabet[device() % kAlphabet.size()]);
  return name;
}

void sync_folder(const fs::path& folder) {
  const Fd fd = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (::fsync(fd.get()) != 0) throw os_error(errno, "cannot write `{}` to disk", folder.string());
}

/// Somebody may have put a pipe or a device there, which would be waited for or read for ever.
void require_end(const Fd& fd, const fs::path& path) {
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  const dev_t null_device = makedev(1, 3);
  const bool is_device =
      S_ISBLK(status.st_mode) || (S_ISCHR(status.st_mode) && status.st_rdev != null_device);
  if (!is_device && !S_ISFIFO(status.st_mode)) return;
  throw not_a_file(path, is_device ? "a device" : "a pipe");
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Fd::close_checked(std::string_view shown) {
  if (fd_ >= 0 && ::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) {
    throw os_error(errno, "cannot write `{}`", shown);
  }
}

Fd open_file(const fs::path& path) { return open_file(path, O_RDONLY); }

Fd open_file(const fs::path& path, int flags, mode_t mode) {
  // Nobody else may write to what is made here, whatever the umask is.
  const mode_t given = mode & ~static_cast<mode_t>(S_IWGRP | S_IWOTH);
  Fd fd{::open(path.c_str(), flags | O_CLOEXEC, given)};
  if (!fd) throw os_error(errno, "cannot open `{}`", path.string());
  return fd;
}

std::string read_file(const fs::path& path) {
  const Fd fd = open_file(path);
  FdSource source{fd.get()};
  return while_doing("reading `" + path.string() + "`",
                     [&] { return read_all(source, 1ULL << 31); });
}

std::optional<std::string> read_file_if_exists(const fs::path& path) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    throw os_error(errno, "cannot open `{}`", path.string());
  }
  require_end(fd, path);
  FdSource source{fd.get()};
  return read_all(source, 1ULL << 31);
}

std::uint64_t file_size(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  return static_cast<std::uint64_t>(status.st_size);
}

void make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw os_error(error.value(), "cannot make the folder `{}`", path.string());
}

std::vector<fs::path> list_folder(const fs::path& path) {
  std::vector<fs::path> entries;
  std::error_code error;
  fs::directory_iterator entry{path, error};
  for (; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    entries.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    throw os_error(error.value(), "cannot list `{}`", path.string());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void reserve_room(int fd, std::uint64_t size_bytes) {
  constexpr std::uint64_t kSmallFile = std::uint64_t{256} << 10;
  if (size_bytes < kSmallFile) return;
  // Every other failure says only that it cannot be done here; the writes will tell.
  if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_bytes)) != 0 &&
      errno == ENOSPC) {
    throw os_error(ENOSPC, "cannot make a file of {} bytes", size_bytes);
  }
}

void write_all(int fd, ByteView data) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw os_error(errno, "cannot write {} bytes", data.size());
    data = data.subspan(static_cast<std::size_t>(count));
  }
}

std::size_t FdSource::read(ByteSpan out) {
  while (true) {
    const ssize_t count = ::read(fd_, out.data(), out.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw os_error(errno, "cannot read");
  }
}

std::size_t SliceSource::read(ByteSpan out) {
  out = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), left_)));
  if (out.empty()) return 0;
  while (true) {
    const ssize_t count = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw os_error(errno, "cannot read");
    if (count == 0) {
      throw failure("truncated", "the file ends {} bytes before it should", left_);
    }
    offset_ += static_cast<std::uint64_t>(count);
    left_ -= static_cast<std::uint64_t>(count);
    return static_cast<std::size_t>(count);
  }
}

namespace {

fs::path parent_or_here(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

fs::path temporary_beside(const fs::path& file) {
  return file.parent_path() / (std::string(kTemporaryPrefix) + random_name());
}

/// A file without a name (open(2), O_TMPFILE): however its process ends, nothing is left of it.
/// None where the file system knows no such files, or without /proc, through which they get names.
Fd open_nameless(const fs::path& folder, mode_t mode) {
  Fd fd{::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode)};
  if (fd && ::access(descriptor_path(fd).c_str(), F_OK) != 0) fd.reset();
  return fd;
}

}  // namespace

AtomicFile::AtomicFile(fs::path target, mode_t mode)
    : target_(std::move(target)), fd_(open_nameless(parent_or_here(target_), mode)) {
  if (fd_) return;
  temporary_ = temporary_beside(target_);
  fd_ = open_file(temporary_, O_RDWR | O_CREAT | O_EXCL, mode);
}

AtomicFile::~AtomicFile() {
  if (!committed_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::commit(bool durable) {
  if (durable && ::fsync(fd_.get()) != 0) {
    throw os_error(errno, "cannot write `{}` to disk", target_.string());
  }
  if (temporary_.empty()) {
    // A link never takes the place of what is there; only a rename does.
    const fs::path name = temporary_beside(target_);
    if (::linkat(AT_FDCWD, descriptor_path(fd_).c_str(), AT_FDCWD, name.c_str(),
                 AT_SYMLINK_FOLLOW) != 0) {
      throw os_error(errno, "cannot put `{}` in place", target_.string());
    }
    temporary_ = name;
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    throw os_error(errno, "cannot put `{}` in place", target_.string());
  }
  committed_ = true;
  if (durable) sync_folder(parent_or_here(target_));
}

void write_file(const fs::path& path, std::string_view text, bool durable) {
  while_doing("writing `" + path.string() + "`", [&] {
    AtomicFile file{path};
    file.write(as_bytes(text));
    file.commit(durable);
  });
}

TemporaryFolder::TemporaryFolder(const fs::path& parent, std::string_view prefix)
    : path_(parent / (std::string(prefix) + random_name())) {
  make_folders(parent);
  if (::mkdir(path_.c_str(), 0700) != 0) {
    throw os_error(errno, "cannot make the folder `{}`", path_.string());
  }
}

TemporaryFolder::~TemporaryFolder() {
  if (path_.empty()) return;
  try {
    remove_tree(path_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): what stays is swept by the next gc
  }
}

fs::path temporary_root() {
  const char* folder = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe)
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

namespace {
/// A lock's file is its owner's alone: whoever may read one may hold it. No link leads to one: it
/// would be made elsewhere.
Fd open_lock(const fs::path& path) {
  Fd fd{::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600)};
  if (fd) return fd;
  if (errno == ELOOP) throw not_a_file(path, "a link");
  throw os_error(errno, "cannot open `{}`", path.string());
}

/// Without a descriptor when somebody else holds it.
Fd lock_file(const fs::path& path, int operation) {
  Fd fd = open_lock(path);
  while (::flock(fd.get(), operation) != 0) {
    if (errno == EWOULDBLOCK) return {};
    if (errno != EINTR) throw os_error(errno, "cannot lock `{}`", path.string());
  }
  return fd;
}
int lock_operation(FileLock::Mode mode) {
  return mode == FileLock::Mode::shared ? LOCK_SH : LOCK_EX;
}
}  // namespace

/// Most are free within moments. Who holds one for longer is told of, and then waited for as long
/// as it takes: a signal that ends programs ends the wait, too.
FileLock FileLock::wait(const fs::path& path, Mode mode) {
  const int operation = lock_operation(mode);
  if (auto lock = attempt(path, mode)) return *std::move(lock);
  Fd fd = open_lock(path);
  constexpr std::chrono::seconds kSilently{3};
  constexpr int kMostPause = 50;  // milliseconds
  const auto until = std::chrono::steady_clock::now() + kSilently;
  for (int pause = 1; ::flock(fd.get(), operation | LOCK_NB) != 0;
       pause = std::min(pause * 2, kMostPause)) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw os_error(errno, "cannot lock `{}`", path.string());
    }
    if (std::chrono::steady_clock::now() >= until) {
      tell_lock_wait(fd.get(), path.string());
      return FileLock{lock_file(path, operation)};
    }
    (void)::poll(nullptr, 0, pause);
  }
  return FileLock{std::move(fd)};
}

std::optional<FileLock> FileLock::attempt(const fs::path& path, Mode mode) {
  Fd fd = lock_file(path, lock_operation(mode) | LOCK_NB);
  if (!fd) return std::nullopt;
  return FileLock{std::move(fd)};
}

}  // namespace mlenv
