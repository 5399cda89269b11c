#include "runner/engine/keeper/enter.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/descriptors.hpp"

namespace mlenv::keeper {
namespace {

constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;
constexpr std::size_t kLongest = 4096;

int open_folder(const char* folder) {
  constexpr int kFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, AT_FDCWD, folder, &how, sizeof how);
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(fd);
  return ::open(folder, kFlags);  // before Linux 5.6: what is seen below has to do
}

/// 0, or errno.
int filter_calls(const char* file) {
  static std::array<sock_filter, BPF_MAXINSNS> code;
  const int fd = ::open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return errno;
  const ssize_t bytes = ::read(fd, code.data(), sizeof code);  // a file in memory: all of it
  const int error = errno;
  ::close(fd);
  if (bytes < 0) return error;
  const auto size = static_cast<std::size_t>(bytes);
  if (size == 0 || size % sizeof(sock_filter) != 0) return EINVAL;
  const sock_fprog program{static_cast<unsigned short>(size / sizeof(sock_filter)), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) {
    return errno;
  }
  return 0;
}

/// The folders of a path that are absent.
int make_absent(const char* folder) {
  std::array<char, kLongest> path{};
  if (std::strlen(folder) >= path.size()) return ENAMETOOLONG;
  std::strncpy(path.data(), folder, path.size() - 1);
  for (char* slash = path.data(); slash != nullptr;) {
    slash = std::strchr(slash + 1, '/');
    if (slash != nullptr) *slash = '\0';
    constexpr mode_t kMode = 0755;
    const int error = ::mkdir(path.data(), kMode) == 0 ? 0 : errno;
    if (slash != nullptr) *slash = '/';
    if (error != 0 && error != EEXIST) return error;
  }
  return 0;
}

void report(int error, Failed::Step step) {
  const Failed failed{error, step};
  (void)!::write(kReportFd, &failed, sizeof failed);
}

const char* search_path() {
  constexpr const char* kName = "PATH=";
  for (char** variable = ::environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, kName, std::strlen(kName)) == 0) {
      return *variable + std::strlen(kName);
    }
  }
  return nullptr;
}

/// As execvp(3), but that a file of no known format is no script.
int execute(char** argv) {
  const char* const name = argv[0];
  if (std::strchr(name, '/') != nullptr) {
    ::execv(name, argv);
    return errno;
  }
  const char* rest = search_path();
  int error = ENOENT;
  for (bool more = rest != nullptr; more;) {
    const char* const colon = std::strchr(rest, ':');
    const auto size = static_cast<int>(colon != nullptr ? static_cast<std::size_t>(colon - rest)
                                                        : std::strlen(rest));
    std::array<char, kLongest> path{};
    const int length =
        std::snprintf(path.data(), path.size(), "%.*s%s%s", size, rest,  // NOLINT: no library
                      size > 0 ? "/" : "", name);
    if (length > 0 && static_cast<std::size_t>(length) < path.size()) {
      ::execv(path.data(), argv);
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) return errno;
      if (errno == EACCES) error = EACCES;
    }
    more = colon != nullptr;
    if (more) rest = colon + 1;
  }
  return error;
}

}  // namespace

int enter_folder(const char* folder) {
  const int fd = open_folder(folder);
  if (fd < 0) return errno;
  int error = ::fchdir(fd) == 0 ? 0 : errno;
  ::close(fd);
  std::array<char, kLongest> seen{};
  // The kernel's own words for one that is not below the root: `(unreachable)/…`.
  if (error == 0 && ::syscall(SYS_getcwd, seen.data(), seen.size()) > 0 && seen[0] != '/') {
    error = EXDEV;
  }
  if (error == EXDEV && ::chdir("/") != 0) error = errno;
  return error;
}

int be_first(int count, char** words) {
  constexpr int kFewest = 4;
  if (count < kFewest) return 2;
  (void)::prctl(PR_SET_DUMPABLE, 0);  // where fs.suid_dumpable is 1 it was traceable until here
  close_from(kReportFd + 1);
  (void)::fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  const char* const filter = words[0];
  const char* const makes = words[1];
  const char* const folder = words[2];
  char** const command = words + 3;
  if (const int error = filter_calls(filter); error != 0) {
    report(error, Failed::Step::filter);
    return kCannotExecute;
  }
  int error = enter_folder(folder);
  if (error == ENOENT && std::strcmp(makes, kMake) == 0) {
    error = make_absent(folder);
    if (error == 0) error = enter_folder(folder);
  }
  if (error != 0) {
    report(error, Failed::Step::folder);
    return kCannotExecute;
  }
  error = execute(command);
  report(error, Failed::Step::program);
  return error == ENOENT || error == ENOTDIR ? kNotFound : kCannotExecute;
}

}  // namespace mlenv::keeper
