#include "runner/local/give_back.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <string_view>

namespace mlenv {
namespace {

void give_entries(int folder, const ContainerUser& user) noexcept;

void give_entry(int folder, const char* name, const ContainerUser& user) noexcept {
  struct stat status {};
  if (::fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (status.st_uid != user.uid || status.st_gid != user.gid) {
    (void)!::fchownat(folder, name, user.uid, user.gid, AT_SYMLINK_NOFOLLOW);
  }
  if (!S_ISDIR(status.st_mode)) return;
  const int entries = ::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (entries >= 0) give_entries(entries, user);
}

/// Closes the folder.
void give_entries(int folder, const ContainerUser& user) noexcept {
  DIR* const entries = ::fdopendir(folder);
  if (entries == nullptr) {
    ::close(folder);
    return;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone
  while (const dirent* const entry = ::readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") give_entry(::dirfd(entries), entry->d_name, user);
  }
  ::closedir(entries);
}

}  // namespace

void give_back(const fs::path& upper, const ContainerUser& user) noexcept {
  give_entry(AT_FDCWD, upper.c_str(), user);
}

}  // namespace mlenv
