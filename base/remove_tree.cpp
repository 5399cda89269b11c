// remove_tree: a removal that goes on where something stays, in bounded memory and descriptors
// however deep and wide the tree is.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/descriptor_path.hpp"
#include "base/error.hpp"
#include "base/tree_walk.hpp"

namespace mlenv {
namespace {

/// Of one folder, which are all held while it is gone through again.
constexpr std::size_t kMostStuck = 10000;

/// By the descriptor: chmod(2) follows links, and no descriptor for listing is to be had yet.
bool open_up(int folder, const std::string& name) {
  const Fd fd{::openat(folder, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  return fd && ::chmod(descriptor_path(fd).c_str(), S_IRWXU) == 0;
}

class Removal {
 public:
  explicit Removal(fs::path shown) : chain_(std::move(shown), FolderChain::Again::from_begin) {}

  /// `name` in `folder`.
  void run(int folder, const std::string& name) {
    take(folder, name);
    while (!chain_.empty()) {
      if (next()) {
        take(FolderChain::fd(chain_.inner()), name_);
      } else if (!goes_again()) {
        end_level(folder, name);
      }
    }
    tell();
  }

 private:
  /// Removes it, or goes into it.
  void take(int folder, const std::string& name) {
    if (unlink(folder, name)) return;
    const int why = errno;
    if (why != EISDIR && why != EPERM && why != EACCES) return stuck(name, why);
    Fd below = open_folder_in(folder, name);
    if (!below && errno == EACCES && open_up(folder, name)) below = open_folder_in(folder, name);
    if (!below) {
      if (errno == ENOENT) return;
      // No folder, or another thing by now: why it cannot be removed is known.
      const bool is_mount = errno == EXDEV;
      return stuck(name, is_mount ? EBUSY : why == EISDIR ? errno : why);
    }
    if (!chain_.push(std::move(below), name)) return stuck(name, errno);
  }

  bool unlink(int folder, const std::string& name) {
    if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return changed();
    if (errno != EACCES || chain_.empty()) return false;
    // The folder itself may be shut for writing.
    if (::fchmod(folder, S_IRWXU) != 0) {
      errno = EACCES;
      return false;
    }
    return (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) && changed();
  }

  bool changed() {
    if (!chain_.empty()) chain_.inner().has_changed = true;
    return true;
  }

  bool next() {
    FolderChain::Level& level = chain_.inner();
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(level.stream.get());  // NOLINT(concurrency-mt-unsafe)
      if (entry == nullptr) {
        if (errno != 0) {
          note(errno, "list", {});
          level.has_changed = false;
        }
        return false;
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (std::find(level.names.begin(), level.names.end(), name) != level.names.end()) continue;
      name_ = name;
      return true;
    }
  }

  /// Some file systems pass entries by while others go.
  bool goes_again() {
    FolderChain::Level& level = chain_.inner();
    if (!level.has_changed) return false;
    level.has_changed = false;
    ::rewinddir(level.stream.get());
    return true;
  }

  void end_level(int outer, const std::string& top) {
    const bool is_top = chain_.size() == 1;
    if (!is_top) chain_.open_parent();
    const std::string name = is_top ? top : chain_.inner().name;
    const int folder = is_top ? outer : FolderChain::fd(chain_.parent());
    const bool is_gone = remove_folder(folder, name, is_top);
    // Of what it holds it has been told.
    if (!is_gone && chain_.inner().names.empty()) note(errno, "remove", {});
    chain_.pop();
    if (is_top) return;
    if (is_gone) {
      chain_.inner().has_changed = true;
    } else {
      keep(name);
    }
  }

  static bool remove_folder(int folder, const std::string& name, bool is_top) {
    if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
    if (errno != EACCES || is_top || ::fchmod(folder, S_IRWXU) != 0) return false;
    return ::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0;
  }

  void stuck(const std::string& name, int why) {
    note(why, "remove", chain_.empty() ? std::string{} : name);
    if (!chain_.empty()) keep(name);
  }

  /// Not to be tried again.
  void keep(const std::string& name) {
    chain_.inner().names.push_back(name);
    if (chain_.inner().names.size() > kMostStuck) tell();
  }

  /// `name`: in the innermost folder; empty: that itself.
  void note(int why, std::string_view what, const std::string& name) {
    if (count_++ > 0) return;
    first_ = why;
    what_ = what;
    std::string path = chain_.path();
    if (!path.empty() && !name.empty()) path += '/';
    path_ = short_path(chain_.shown(), path + name);
  }

  void tell() const {
    if (count_ == 0) return;
    Error error = os_error(first_, "cannot {} `{}`", what_, path_);
    if (count_ > 1) error.because(fmt::format("nor {} more below it", count_ - 1));
    throw Error(error);
  }

  FolderChain chain_;
  std::string name_;
  std::size_t count_ = 0;
  int first_ = 0;
  std::string_view what_;
  std::string path_;
};

}  // namespace

void remove_tree(const fs::path& path) {
  const fs::path plain = path.has_filename() ? path : path.parent_path();
  const fs::path parent = plain.has_parent_path() ? plain.parent_path() : fs::path(".");
  const Fd folder{::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!folder) {
    if (errno == ENOENT) return;
    throw os_error(errno, "cannot remove `{}`", path.string());
  }
  Removal{plain}.run(folder.get(), plain.filename().string());
}

void remove_tree_at(int folder_fd, const std::string& name) { Removal{name}.run(folder_fd, name); }

}  // namespace mlenv
