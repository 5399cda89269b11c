#include "base/scratch_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <string_view>
#include <system_error>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kScratchPrefix = "mlenv-scratch-";
/// In each: what else has such a name is not touched.
constexpr const char* kMark = ".mlenv-scratch";

bool is_named(const struct stat& open, const fs::path& path) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && found.st_dev == open.st_dev &&
         found.st_ino == open.st_ino;
}

/// A folder's own descriptor, locked; empty where it is another user's, locked, or none any more.
Fd lock_folder(const fs::path& path) {
  Fd fd{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 || !is_named(info, path)) return {};
  return fd;
}

void sweep(const fs::path& root) {
  std::error_code error;
  for (fs::directory_iterator at{root, error}, end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (!has_temporary_name(path.filename().string(), kScratchPrefix)) continue;
    if (!is_own_folder(path) || !is_own_file(path / kMark)) continue;
    const Fd lock = lock_folder(path);
    if (!lock) continue;
    try {
      remove_tree(path);
    } catch (const Error& failed) {
      log::debug("left `{}` for the next sweep: {}", path.string(), failed.what());
    }
  }
}

}  // namespace

ScratchFolder::Parts ScratchFolder::make(const fs::path& root) {
  constexpr int kMost = 10;  // each time somebody else's sweep came between
  sweep(root);
  for (int i = 1; i < kMost; ++i) {
    TemporaryFolder folder{root, kScratchPrefix};
    Fd lock = lock_folder(folder.path());
    if (lock) write_file(folder.path() / kMark, "", /*durable=*/false);
    if (lock) return {std::move(lock), std::move(folder)};
  }
  return {Fd{}, TemporaryFolder{root, kScratchPrefix}};
}

}  // namespace mlenv
