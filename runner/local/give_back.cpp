#include "runner/local/give_back.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <exception>

#include "base/log.hpp"
#include "base/tree_walk.hpp"

namespace mlenv {
namespace {

void give(int folder, const char* name, const struct stat& status, const ContainerUser& user) {
  if (status.st_uid == user.uid && status.st_gid == user.gid) return;
  (void)!::fchownat(folder, name, user.uid, user.gid, AT_SYMLINK_NOFOLLOW);
}

}  // namespace

void give_back(const fs::path& upper, const ContainerUser& user) noexcept {
  struct stat top {};
  if (::lstat(upper.c_str(), &top) != 0) return;
  give(AT_FDCWD, upper.c_str(), top, user);
  if (!S_ISDIR(top.st_mode)) return;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    give(entry.folder, entry.name.c_str(), entry.status, user);
    return true;
  };
  walk.unreadable = [](std::string_view, int) {};
  try {
    walk_tree(upper, walk);
  } catch (const std::exception& error) {
    log::debug("not all of `{}` was given back: {}", upper.string(), error.what());
  }
}

}  // namespace mlenv
