#include "base/tree_walk.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/error.hpp"

namespace mlenv {
namespace {

/// Levels beside the top that stay open.
constexpr std::size_t kOpenLevels = 16;
constexpr int kReadableFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

/// By the device: what is mounted there of the same file system is not told apart.
Fd open_without_openat2(int folder, const std::string& name) {
  struct stat above {};
  struct stat below {};
  Fd fd{::openat(folder, name.c_str(), kReadableFolder)};
  if (!fd) return fd;
  if (::fstat(folder, &above) != 0 || ::fstat(fd.get(), &below) != 0) return {};
  if (above.st_dev == below.st_dev) return fd;
  fd.reset();
  errno = EXDEV;
  return fd;
}

bool is_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

class Walker {
 public:
  Walker(const fs::path& shown, const TreeWalk& walk) : walk_(walk), chain_(shown) {}

  void run(Fd top) {
    if (!chain_.push(std::move(top), {})) {
      return cannot(errno);
    }
    begin();
    while (!chain_.empty()) {
      if (next()) {
        look();
      } else {
        leave();
      }
    }
  }

 private:
  /// Of a level that has just been entered.
  void begin() {
    if (!walk_.sorted) return;
    FolderChain::Level& level = chain_.inner();
    std::vector<std::string> names;
    while (read_name()) names.push_back(name_);
    std::sort(names.begin(), names.end(), std::greater<>{});
    level.names = std::move(names);
  }

  /// Into `name_`; false at the end of the innermost level.
  bool next() {
    if (!walk_.sorted) return read_name();
    std::vector<std::string>& names = chain_.inner().names;
    if (names.empty()) return false;
    name_ = std::move(names.back());
    names.pop_back();
    return true;
  }

  bool read_name() {
    DIR* const stream = chain_.inner().stream.get();
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(stream);  // NOLINT(concurrency-mt-unsafe)
      if (entry == nullptr) {
        if (errno != 0) cannot(errno);
        return false;
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      name_ = name;
      return true;
    }
  }

  void look() {
    const std::size_t length = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += name_;
    if (!look_at_entry()) path_.resize(length);
  }

  /// Whether it was entered.
  bool look_at_entry() {
    const int folder = FolderChain::fd(chain_.inner());
    TreeEntry entry{folder, name_, path_, {}, chain_.size() - 1};
    if (::fstatat(folder, name_.c_str(), &entry.status, AT_SYMLINK_NOFOLLOW) != 0) {
      cannot(errno);
      return false;
    }
    if (!walk_.visit(entry) || !S_ISDIR(entry.status.st_mode)) return false;
    Fd below = walk_.enter_mounts ? Fd{::openat(folder, name_.c_str(), kReadableFolder)}
                                  : open_folder_in(folder, name_);
    if (!below || !chain_.push(std::move(below), name_)) {
      if (errno != EXDEV) cannot(errno);
      return false;
    }
    begin();
    return true;
  }

  void leave() {
    if (chain_.size() > 1) {
      chain_.open_parent();
      if (walk_.leave) {
        const std::string& name = chain_.inner().name;
        TreeEntry entry{FolderChain::fd(chain_.parent()), name, path_, {}, chain_.size() - 2};
        if (::fstat(FolderChain::fd(chain_.inner()), &entry.status) == 0) walk_.leave(entry);
      }
      const std::size_t name = chain_.inner().name.size();
      path_.resize(path_.size() - std::min(path_.size(), name + (chain_.size() > 2 ? 1 : 0)));
    }
    chain_.pop();
  }

  void cannot(int error) {
    if (is_gone(error)) {
      if (walk_.gone) walk_.gone(path_);
      return;
    }
    if (walk_.unreadable) return walk_.unreadable(path_, error);
    throw os_error(error, "cannot read `{}`", short_path(chain_.shown(), path_));
  }

  const TreeWalk& walk_;
  FolderChain chain_;
  std::string name_;
  std::string path_;
};

}  // namespace

Fd open_folder_in(int folder, const std::string& name) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kReadableFolder);
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS;
  while (true) {
    const long fd = ::syscall(SYS_openat2, folder, name.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd{static_cast<int>(fd)};
    // Before Linux 5.6, or under an old seccomp profile.
    if (errno == ENOSYS || errno == EPERM) return open_without_openat2(folder, name);
    if (errno != EAGAIN && errno != EINTR) return {};
  }
}

bool FolderChain::push(Fd folder, std::string name) {
  struct stat status {};
  if (::fstat(folder.get(), &status) != 0) return false;
  Level level;
  level.stream.reset(::fdopendir(folder.get()));
  if (!level.stream) return false;
  (void)folder.release();  // the stream closes it
  level.name = std::move(name);
  level.device = status.st_dev;
  level.node = status.st_ino;
  levels_.push_back(std::move(level));
  close_outer();
  return true;
}

/// The one that is now too far out; the top stays open.
void FolderChain::close_outer() {
  if (levels_.size() < kOpenLevels + 2) return;
  Level& outer = levels_[levels_.size() - kOpenLevels - 1];
  if (!outer.stream) return;
  outer.place = ::telldir(outer.stream.get());
  outer.stream.reset();
}

void FolderChain::open_parent() {
  Level& above = parent();
  if (above.stream) return;
  Fd folder{::openat(fd(inner()), "..", kReadableFolder)};
  struct stat status {};
  if (!folder || ::fstat(folder.get(), &status) != 0) {
    throw os_error(errno, "cannot go back from `{}`", short_path(shown_, path()));
  }
  if (status.st_dev != above.device || status.st_ino != above.node) {
    throw failure("file-changed", "`{}` was moved while its folder was read",
                  short_path(shown_, path()))
        .hint("run the command again when nothing writes there");
  }
  above.stream.reset(::fdopendir(folder.get()));
  if (!above.stream) throw os_error(errno, "cannot list `{}`", short_path(shown_, path()));
  (void)folder.release();
  if (again_ == Again::where_it_was) ::seekdir(above.stream.get(), above.place);
}

void FolderChain::pop() { levels_.pop_back(); }

std::string FolderChain::path() const {
  std::string path;
  for (const Level& level : levels_) {
    if (!path.empty()) path += '/';
    path += level.name;
  }
  return path;
}

bool is_too_deep(const fs::path& top, std::string_view path) {
  return top.native().size() + 1 + path.size() >= PATH_MAX;
}

std::string short_path(const fs::path& top, std::string_view below) {
  constexpr std::size_t kLongest = 400;
  constexpr std::size_t kPart = 150;
  std::string path = top.string();
  if (!below.empty() && !path.empty() && path.back() != '/') path += '/';
  path += below;
  if (path.size() <= kLongest) return path;
  return path.substr(0, kPart) + "…" + path.substr(path.size() - kPart);
}

void walk_tree(Fd top, const fs::path& shown, const TreeWalk& walk) {
  Walker{shown, walk}.run(std::move(top));
}

void walk_tree(const fs::path& top, const TreeWalk& walk) {
  Fd fd{::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (fd) return walk_tree(std::move(fd), top, walk);
  if (is_gone(errno)) {
    if (walk.gone) walk.gone({});
    return;
  }
  if (walk.unreadable) return walk.unreadable({}, errno);
  throw os_error(errno, "cannot read `{}`", top.string());
}

}  // namespace mlenv
