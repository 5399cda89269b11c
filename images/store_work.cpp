#include "images/store_work.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <cerrno>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"

namespace mlenv {
namespace {

constexpr const char* kLockName = ".lock";

/// A folder whose process is gone, and the lock that makes it ours to remove.
struct Dead {
  fs::path folder;
  Fd lock;
};

/// The guard is held: no folder is between being made and being locked, so one without a lock file
/// is dead, or being removed by another sweep (two may do that at once).
std::vector<Dead> find_dead(const fs::path& tmp) {
  std::vector<Dead> dead;
  for (const fs::path& folder : list_folder(tmp)) {
    Fd lock{::open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC)};
    if (!lock && errno != ENOENT && errno != ENOTDIR) continue;  // another user's
    if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) continue;
    dead.push_back({folder, std::move(lock)});
  }
  return dead;
}

/// A default ACL would take the place of the umask for all that is made below (acl(5)), and modes
/// are part of what is built. Where a file system knows none, nothing is to be done.
void remove_acls(const fs::path& folder) {
  (void)::removexattr(folder.c_str(), "system.posix_acl_default");
  (void)::removexattr(folder.c_str(), "system.posix_acl_access");
}

}  // namespace

void remove_work(const fs::path& folder) {
  try {
    remove_tree(folder);
  } catch (const Error& error) {
    log::debug("left `{}` for the next sweep: {}", folder.string(), error.what());
  }
}

StoreWork::~StoreWork() {
  if (!folder_.empty()) remove_work(folder_);
}

const fs::path& StoreWork::folder() {
  const std::lock_guard lock{mutex_};
  if (folder_.empty()) {
    make_folders(tmp_);
    const FileLock guard = FileLock::wait(guard_, FileLock::Mode::shared);
    TemporaryFolder made{tmp_, "work-"};
    remove_acls(made.path());
    lock_ = FileLock::attempt(made.path() / kLockName, FileLock::Mode::exclusive);
    folder_ = made.release();
  }
  return folder_;
}

fs::path StoreWork::fresh(std::string_view kind) {
  return folder() / fmt::format("{}-{}", kind, ++count_);
}

std::string StoreWork::unique() {
  return fmt::format("{}-{}", folder().filename().string(), ++count_);
}

void StoreWork::sweep() const {
  if (list_folder(tmp_).empty()) return;
  try {
    std::vector<Dead> dead;
    {
      const auto guard = FileLock::attempt(guard_, FileLock::Mode::exclusive);
      if (!guard) return;
      dead = find_dead(tmp_);
    }
    // One that cannot be removed does not keep the others.
    for (const Dead& item : dead) remove_work(item.folder);
  } catch (const Error& error) {
    log::debug("did not sweep `{}`: {}", tmp_.string(), error.what());
  }
}

}  // namespace mlenv
