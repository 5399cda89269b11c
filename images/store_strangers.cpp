#include "images/store_strangers.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <string_view>

#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "images/store_mark.hpp"

namespace mlenv {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

/// Those that are made when something is first put there.
constexpr std::array<const char*, 8> kLaterFolders = {"runs",    "kept", "jobs", "data",
                                                      "history", "node", "vm",   "partial"};

/// What of a store's folder is looked at.
enum class Look : std::uint8_t {
  itself,   ///< what is in it has modes and owners of its own, or is told apart by them later
  entries,  ///< who made what is in it
  below,    ///< the same of the folders in it
};

Look look_of(std::string_view name) {
  if (name == "tmp") return Look::itself;
  if (name == "trees" || name == "kept" || name == "data") return Look::entries;
  return Look::below;
}

Error stranger(const fs::path& root, const fs::path& path, uid_t maker) {
  return failure("not-a-store", "`{}` is not a store of one user", root.string())
      .because(fmt::format("`{}` belongs to another user (id {}), who could write here",
                           path.string(), maker))
      .hint(
          "take away what is not yours, or set MLENV_STORE to a folder that only you may write to");
}

/// Whom the store belongs to, beside this user and root. Root names somebody's store, which may
/// lie in a folder of root's.
uid_t owner_of(const fs::path& root, const struct stat& status) {
  struct stat mark {};
  const bool is_root = ::geteuid() == 0 && status.st_uid == 0;
  if (is_root && ::lstat((root / kStoreMark).c_str(), &mark) == 0) return mark.st_uid;
  return status.st_uid;
}

/// Of a folder of this user's; whether it had another. By the descriptor: what has its name may be
/// another thing by now.
bool set_mode(const Fd& folder, const struct stat& status, mode_t wanted) {
  return status.st_uid == ::geteuid() && (status.st_mode & 07777U) != wanted &&
         ::chmod(descriptor_path(folder).c_str(), wanted) == 0;
}

class Doors {
 public:
  Doors(fs::path root, uid_t owner) : root_(std::move(root)), owner_(owner) {}

  /// `was_open`: others could put a folder in this place.
  void shut(const fs::path& path, Look look, bool is_private, bool was_open) const {
    const Fd fd{::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) return;
    if (was_open && !may_make(status.st_uid, owner_)) throw stranger(root_, path, status.st_uid);
    const mode_t mode = status.st_mode & 07777U;
    const mode_t wanted = is_private ? S_IRWXU : mode & ~kOthersWrite;
    const bool is_open = (mode & kOthersWrite) != 0;
    const bool is_changed = set_mode(fd, status, wanted);
    if (!is_open || look == Look::itself) return;
    try {
      look_into(path, look);
    } catch (const Error&) {
      // The next command is to look, too.
      if (is_changed) (void)::chmod(descriptor_path(fd).c_str(), mode);
      throw;
    }
  }

  void look_into(const fs::path& folder, Look look) const {
    for (const fs::path& path : list_folder(folder)) {
      struct stat status {};
      if (::lstat(path.c_str(), &status) != 0) continue;
      if (!may_make(status.st_uid, owner_)) throw stranger(root_, path, status.st_uid);
      if (look == Look::below && S_ISDIR(status.st_mode)) {
        shut(path, look, /*is_private=*/false, /*was_open=*/true);
      }
    }
  }

 private:
  fs::path root_;
  uid_t owner_;
};

}  // namespace

bool may_make(uid_t maker, uid_t owner) {
  return maker == ::geteuid() || maker == 0 || maker == owner;
}

fs::path own_part_of_store(const fs::path& root, const char* name) {
  fs::path path = root / name;
  struct stat status {};
  struct stat whole {};
  if (::lstat(path.c_str(), &status) != 0 || ::stat(root.c_str(), &whole) != 0) return path;
  if (!S_ISDIR(status.st_mode)) {
    throw failure("not-a-store", "`{}` is not a store of mlenv", root.string())
        .because(fmt::format("`{}` is a link or a file, and no folder", path.string()));
  }
  if (!may_make(status.st_uid, owner_of(root, whole))) {
    throw stranger(root, path, status.st_uid);
  }
  return path;
}

void shut_others_out(const fs::path& root) {
  struct stat status {};
  if (::stat(root.c_str(), &status) != 0) return;
  const bool was_open =
      (status.st_mode & kOthersWrite) != 0 || (status.st_uid != ::geteuid() && status.st_uid != 0);
  const Doors doors{root, owner_of(root, status)};
  if (was_open) doors.look_into(root, Look::entries);
  for (const char* name : kStoreFolders) {
    // Trees hold set-user-ID programs: nobody else may reach them.
    const bool is_private = std::string_view(name) == "trees";
    doors.shut(root / name, look_of(name), is_private, was_open);
  }
  for (const char* name : kLaterFolders) doors.shut(root / name, look_of(name), false, was_open);
  // The store's own: whoever may write to it can put another folder in the place of one in it.
  const Fd whole = open_file(root, O_PATH | O_DIRECTORY);
  if (::fstat(whole.get(), &status) == 0) {
    (void)set_mode(whole, status, status.st_mode & 07777U & ~kOthersWrite);
  }
}

}  // namespace mlenv
