#include "runner/engine/keeper/files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>

#include "runner/engine/keeper/whole.hpp"

namespace mlenv::keeper {

/// Whether what is there of `path`, links followed, lies in another mount than the root: a folder
/// of the person's, in which nothing of ours is made. What cannot be found out counts as one.
bool leads_into_mount(const char* path) {
  std::array<char, 4096> part{};
  if (std::strlen(path) >= part.size()) return true;
  std::strncpy(part.data(), path, part.size() - 1);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV;
  while (true) {
    const long fd = ::syscall(SYS_openat2, AT_FDCWD, part.data(), &how, sizeof how);
    if (fd >= 0) ::close(static_cast<int>(fd));
    if (fd >= 0 || errno == ENOTDIR || errno == ELOOP) return false;
    if (errno != ENOENT) return true;
    char* const slash = std::strrchr(part.data(), '/');
    if (slash == nullptr || slash == part.data()) return false;
    *slash = '\0';
  }
}

/// 0, or errno. Those that are made belong to us, the last one as `head` says.
int make_folders(char* path, const FolderHead& head) {
  bool made = false;
  for (char* slash = path; slash != nullptr;) {
    slash = std::strchr(slash + 1, '/');
    if (slash != nullptr) *slash = '\0';
    made = ::mkdir(path, 0755) == 0;
    const int error = made ? 0 : errno;
    if (slash != nullptr) *slash = '/';
    if (error != 0 && error != EEXIST) return error;
  }
  struct stat status {};
  if (::stat(path, &status) != 0) return errno;
  if (!S_ISDIR(status.st_mode)) return ENOTDIR;
  if (!made && head.give == 0) return 0;
  return ::chown(path, head.uid, head.gid) == 0 || errno == EPERM ? 0 : errno;
}

int write_into(const char* path, int flags, const FileHead& head, std::span<const char> content) {
  const int fd = ::open(path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return errno;
  int error = write_whole(fd, content.data(), content.size()) ? 0 : errno;
  if ((flags & O_CREAT) != 0) {
    (void)::fchown(fd, head.uid, head.gid);
    (void)::fchmod(fd, head.mode);
  }
  if (::close(fd) != 0 && error == 0) error = errno;
  return error;
}

namespace {

/// A path beside `path`, in a folder that is made where it is absent.
struct Beside {
  std::array<char, 4096> path{};
  int error = 0;
  bool is_theirs = false;  ///< the folder is the person's
};

Beside beside(char* path) {
  Beside made;
  if (char* const slash = std::strrchr(path, '/'); slash != nullptr && slash != path) {
    *slash = '\0';
    made.is_theirs = leads_into_mount(path);
    if (!made.is_theirs) made.error = make_folders(path, {});
    *slash = '/';
  }
  const int size =
      std::snprintf(made.path.data(), made.path.size(), "%s.mlenv-new",  // NOLINT: no library
                    path);
  if (size >= static_cast<int>(made.path.size())) made.error = ENAMETOOLONG;
  if (made.error == 0 && !made.is_theirs) (void)::unlink(made.path.data());
  return made;
}

}  // namespace

int write_file(Reader reader) {
  const auto head = reader.take<FileHead>();
  char* const path = reader.text();
  const Beside made = beside(path);
  if (made.is_theirs || made.error != 0) return made.error;
  int error = write_into(made.path.data(), O_CREAT | O_EXCL, head, reader.rest());
  if (error == 0 && ::rename(made.path.data(), path) != 0) error = errno;
  if (error != 0) (void)::unlink(made.path.data());
  // What the engine itself mounts there (/etc/hosts) is written in place.
  return error == EBUSY ? write_into(path, O_TRUNC, head, reader.rest()) : error;
}

int make_link(Reader reader) {
  char* const path = reader.text();
  const char* const leads_to = reader.text();
  const Beside made = beside(path);
  if (made.is_theirs || made.error != 0) return made.error;
  if (::symlink(leads_to, made.path.data()) != 0) return errno;
  if (::rename(made.path.data(), path) == 0) return 0;
  const int error = errno;
  (void)::unlink(made.path.data());
  return error;
}

int set_mode(Reader reader) {
  const auto head = reader.take<FileHead>();
  return ::chmod(reader.text(), head.mode) == 0 ? 0 : errno;
}

}  // namespace mlenv::keeper
