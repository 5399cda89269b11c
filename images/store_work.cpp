#include "images/store_work.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <ctime>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"

namespace mlenv {
namespace {

constexpr const char* kLockName = ".lock";
constexpr const char* kNeedsName = ".needs";

constexpr std::string_view kWork = "work-";

/// A folder whose process is gone, and the lock that makes it ours to remove.
struct Dead {
  fs::path folder;
  Fd lock;
};

/// Of any user's.
bool is_work(const fs::path& folder) {
  return has_temporary_name(folder.filename().string(), kWork);
}

/// A tree that was taken away on a full disk.
bool is_garbage(const fs::path& folder) {
  constexpr std::string_view kGarbage = "garbage-";
  const std::string name = folder.filename().string();
  return name.starts_with(kGarbage) &&
         is_digest_name(std::string_view(name).substr(kGarbage.size()));
}

/// The guard is held: no folder is between being made and being locked, so one without a lock file
/// is dead, or being removed by another sweep (two may do that at once). One whose lock file cannot
/// be opened is another user's, and may live.
bool is_dead(const fs::path& folder, Fd& lock) {
  // Over NFS an exclusive lock wants a file that may be written.
  lock = Fd{::open((folder / kLockName).c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (!lock) return errno == ENOENT || errno == ENOTDIR;
  return ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0;
}

/// Ours by its lock file, which is made first and goes last; without one it holds nothing.
bool has_our_lock(const fs::path& folder) {
  return is_own_file(folder / kLockName) || list_folder(folder).empty();
}

std::vector<Dead> find_dead(const fs::path& tmp) {
  std::vector<Dead> dead;
  for (const fs::path& folder : list_folder(tmp)) {
    if (!is_own_folder(folder)) continue;
    Fd lock;
    if (is_garbage(folder) && is_own_folder(folder / "fs")) {
      dead.push_back({folder, {}});
    } else if (is_work(folder) && has_our_lock(folder) && is_dead(folder, lock)) {
      dead.push_back({folder, std::move(lock)});
    }
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

/// The lock file last: what is left of it by a kill is known by that.
std::string remove_work(const fs::path& folder) {
  std::string why;
  const auto remove = [&](const fs::path& path) {
    try {
      remove_tree(path);
    } catch (const Error& error) {
      if (why.empty()) why = error.what();
    }
  };
  try {
    if (is_own_folder(folder)) {
      for (const fs::path& entry : list_folder(folder)) {
        if (entry.filename() != kLockName) remove(entry);
      }
    }
    if (why.empty()) remove(folder);
  } catch (const Error& error) {
    why = error.what();
  }
  if (!why.empty()) log::debug("left `{}` for the next sweep: {}", folder.string(), why);
  return why;
}

StoreWork::~StoreWork() {
  if (!folder_.empty()) (void)remove_work(folder_);
}

const fs::path& StoreWork::folder() {
  const std::lock_guard lock{mutex_};
  if (folder_.empty()) {
    make_own_folders(tmp_);
    const FileLock guard = FileLock::wait(guard_, FileLock::Mode::shared);
    make_folder();
  }
  return folder_;
}

/// The guard is held.
void StoreWork::make_folder() {
  TemporaryFolder made{tmp_, kWork};
  remove_acls(made.path());
  lock_ = FileLock::attempt(made.path() / kLockName, FileLock::Mode::exclusive);
  if (first_use_) {
    const std::array<timespec, 2> since = {timespec{0, UTIME_OMIT}, timespec{*first_use_, 0}};
    (void)::utimensat(AT_FDCWD, (made.path() / kLockName).c_str(), since.data(), 0);
  }
  folder_ = made.release();
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
    for (const Dead& item : dead) (void)remove_work(item.folder);
  } catch (const Error& error) {
    log::debug("did not sweep `{}`: {}", tmp_.string(), error.what());
  }
}

std::vector<StoreWork::Left> StoreWork::left() const {
  std::vector<Left> left;
  std::vector<Dead> dead;
  {
    const auto guard = FileLock::attempt(guard_, FileLock::Mode::exclusive);
    if (guard) dead = find_dead(tmp_);
  }
  for (const Dead& item : dead) {
    std::string why = remove_work(item.folder);
    if (!why.empty()) left.push_back({item.folder, std::move(why)});
  }
  return left;
}

bool StoreWork::use(const fs::path& path) {
  if (only_looks_) return ::access(path.c_str(), F_OK) == 0;
  if (told_ != Told::lives) tell_that_we_live();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  const auto used = std::chrono::system_clock::from_time_t(status.st_mtime);
  if (std::chrono::system_clock::now() - used < kGrain) return true;
  try {
    // Whoever looks for garbage has taken it away, or sees that it was used.
    const FileLock guard = FileLock::wait(guard_, FileLock::Mode::shared);
    constexpr std::array<timespec, 2> kNow = {timespec{0, UTIME_OMIT}, timespec{0, UTIME_NOW}};
    if (::utimensat(AT_FDCWD, path.c_str(), kNow.data(), 0) == 0) return true;
    if (errno == ENOENT) return false;
    if (errno == EPERM || errno == EACCES) need_all();
  } catch (const Error& error) {
    log::debug("did not note that `{}` was used: {}", path.string(), error.what());
  }
  return true;
}

/// From as early on as times can tell.
void StoreWork::need_all() {
  const fs::path lock = folder() / kLockName;
  constexpr std::array<timespec, 2> kFirst = {timespec{0, UTIME_OMIT}, timespec{0, 0}};
  if (::utimensat(AT_FDCWD, lock.c_str(), kFirst.data(), 0) != 0) {
    log::debug("cannot change the time of `{}`: {}", lock.string(), errno_text(errno));
  }
}

/// Where it cannot be told now (a full disk), the next use tells it, with the time of the first.
void StoreWork::tell_that_we_live() {
  const std::lock_guard lock{telling_};
  if (told_ == Told::lives) return;
  if (!first_use_) first_use_ = std::time(nullptr);
  try {
    const fs::path needs = folder() / kNeedsName;
    if (told_ == Told::needs) {
      const FileLock guard = FileLock::wait(guard_, FileLock::Mode::shared);
      if (::unlink(needs.c_str()) != 0 && errno != ENOENT) {
        throw os_error(errno, "cannot remove `{}`", needs.string());
      }
    }
    told_ = Told::lives;
  } catch (const Error& error) {
    log::debug("did not note that this process uses the store: {}", error.what());
  }
}

void StoreWork::need_only(const std::vector<Digest>& digests) {
  const std::lock_guard lock{telling_};
  std::string text;
  for (const Digest& digest : digests) text += digest.str() + "\n";
  try {
    write_file(folder() / kNeedsName, text, false);
    told_ = Told::needs;
  } catch (const Error& error) {
    log::debug("did not note what this process needs: {}", error.what());
  }
}

FileLock StoreWork::keep_others_out() const {
  return FileLock::wait(guard_, FileLock::Mode::exclusive);
}

void StoreWork::make_while_others_wait() {
  const std::lock_guard lock{mutex_};
  if (folder_.empty()) make_folder();
}

std::vector<StoreWork::Living> StoreWork::living() const {
  using SystemClock = std::chrono::system_clock;
  std::vector<Living> all;
  for (const fs::path& folder : list_folder(tmp_)) {
    Fd lock;
    if (folder == folder_ || !is_work(folder) || is_dead(folder, lock)) continue;
    Living one{SystemClock::from_time_t(0), std::nullopt};
    struct stat status {};
    if (lock && ::fstat(lock.get(), &status) == 0) {
      const auto since = SystemClock::from_time_t(status.st_mtime);
      // A clock that was put back since tells nothing.
      if (since <= SystemClock::now()) one.since = since;
      one.needs = read_file_if_exists(folder / kNeedsName);
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace mlenv
