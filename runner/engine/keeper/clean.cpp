#include "runner/engine/keeper/clean.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace mlenv::keeper {
namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

/// The top of what is cleared, and what was brought up to it from too deep below.
struct Top {
  int fd;
  dev_t device;
  int brought_up = 0;
};

/// A folder to the top, under a name that nobody has.
void bring_up(Top& top, int fd, const char* name) {
  std::array<char, 64> fresh{};
  (void)std::snprintf(fresh.data(), fresh.size(), ".cleared-%d-%d", static_cast<int>(::getpid()),
                      top.brought_up);
  if (::renameat(fd, name, top.fd, fresh.data()) == 0) ++top.brought_up;
}

/// What lies in a folder, on its file system alone: what is mounted below it is the person's.
void clear(Top& top, int fd, int depth = 0) {
  constexpr int kDeepest = 32;  // each level is a descriptor
  struct stat status {};
  const bool within = ::fstat(fd, &status) == 0 && status.st_dev == top.device;
  DIR* const folder = within ? ::fdopendir(fd) : nullptr;
  if (folder == nullptr) {
    ::close(fd);
    return;
  }
  while (const dirent* const entry = ::readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    if (::unlinkat(fd, entry->d_name, 0) == 0 || errno != EISDIR) continue;
    const int below = depth < kDeepest ? ::openat(fd, entry->d_name, kFolder) : -1;
    if (below >= 0) clear(top, below, depth + 1);
    if (::unlinkat(fd, entry->d_name, AT_REMOVEDIR) == 0 || depth < kDeepest) continue;
    bring_up(top, fd, entry->d_name);
  }
  ::closedir(folder);
}

/// Ids are the second column of /proc/sysvipc/KIND.
template <class Remove>
void clear_listed(const char* list, Remove remove) {
  FILE* const file = std::fopen(list, "re");  // NOLINT: no C++ library
  if (file == nullptr) return;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
    char* rest = line.data();
    (void)std::strtol(rest, &rest, 10);
    char* end = rest;
    const long id = std::strtol(rest, &end, 10);
    if (end != rest) remove(static_cast<int>(id));
  }
  (void)std::fclose(file);
}

}  // namespace

void clear_memory(const char* path) {
  const int fd = ::open(path, kFolder);
  struct stat status {};
  struct statfs system {};
  if (fd < 0) return;
  constexpr long kQueues = 0x19800202;  // MQUEUE_MAGIC of the kernel's ipc/mqueue.c
  const bool in_memory = ::fstatfs(fd, &system) == 0 && ::fstat(fd, &status) == 0 &&
                         (system.f_type == TMPFS_MAGIC || system.f_type == kQueues);
  if (!in_memory) {
    ::close(fd);
    return;
  }
  Top top{fd, status.st_dev};
  for (int before = -1; before < top.brought_up;) {
    before = top.brought_up;
    const int again = ::openat(fd, ".", kFolder);
    if (again >= 0) clear(top, again);
  }
  ::close(fd);
}

void clear_ipc() {
  clear_listed("/proc/sysvipc/shm", [](int id) { ::shmctl(id, IPC_RMID, nullptr); });
  clear_listed("/proc/sysvipc/sem", [](int id) { ::semctl(id, 0, IPC_RMID); });
  clear_listed("/proc/sysvipc/msg", [](int id) { ::msgctl(id, IPC_RMID, nullptr); });
}

}  // namespace mlenv::keeper
