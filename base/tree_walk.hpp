#pragma once
// Walks over trees that others made, and (remove_tree of base/files.hpp) their removal. However
// deep and wide one is, a walk holds few descriptors and a name a level; it calls itself nowhere.
// Links are never followed, and what is mounted in a tree is entered only where that is asked for.
// Whoever moves folders meanwhile ends the walk (`file-changed`); nothing outside of the tree is
// met.
#include <dirent.h>
#include <sys/stat.h>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Something below a tree's top. `folder` and `name` are for the calls that end in `at`: a path may
/// be longer than the kernel takes.
struct TreeEntry {
  int folder;               ///< open: what holds it
  const std::string& name;  ///< in there
  std::string_view path;    ///< from the top: `a/b`
  struct stat status;       ///< lstat(2)
  std::size_t depth;        ///< folders between it and the top
};

struct TreeWalk {
  /// A folder comes before what it holds. False of a folder: that is passed by.
  std::function<bool(const TreeEntry&)> visit;
  /// A folder that was entered, after all that it holds.
  std::function<void(const TreeEntry&)> leave{};
  /// What cannot be looked at, and why (errno); without it that is thrown. What vanishes is passed
  /// by.
  std::function<void(std::string_view path, int error)> unreadable{};
  /// What vanishes meanwhile, also the top; without it that is passed by.
  std::function<void(std::string_view path)> gone{};
  /// The entries of each folder by the bytes of their names. All names of a folder are held then.
  bool sorted = false;
  /// What is mounted in the tree is part of it: of a person's own folder.
  bool enter_mounts = false;
};

/// Of all that lies below `top`, a folder; a top that is a link to one is followed. Nothing is
/// there below what is no folder.
void walk_tree(const fs::path& top, const TreeWalk& walk);
/// The same of an open folder. `shown` is what messages call it.
void walk_tree(Fd top, const fs::path& shown, const TreeWalk& walk);

/// `path` lies below `top`: nobody could name it, or the tree may be deeper than what its paths
/// take together is to cost.
bool is_too_deep(const fs::path& top, std::string_view path);

/// A path for messages: the middle of one that is longer than anybody reads is left out.
std::string short_path(const fs::path& top, std::string_view below);

/// The folders from a tree's top down to one of them, of which only some are open at a time: the
/// top, and the innermost ones. For walk_tree and remove_tree.
class FolderChain {
 public:
  struct Level {
    std::string name;  ///< in the one above
    dev_t device = 0;
    ino_t node = 0;
    Owned<::closedir>::of<DIR> stream;  ///< null: closed for now
    long place = 0;                     ///< of its listing
    std::vector<std::string> names;     ///< for the walk's or the removal's own use
    bool has_changed = false;           ///< the same
  };

  /// How a listing goes on that was closed meanwhile. Of a folder that loses entries no other place
  /// than its begin is sure.
  enum class Again { where_it_was, from_begin };
  explicit FolderChain(fs::path shown, Again again = Again::where_it_was)
      : shown_(std::move(shown)), again_(again) {}
  /// False, with errno: it cannot be listed.
  bool push(Fd folder, std::string name);
  /// Ends the innermost level.
  void pop();
  /// Opens the one above the innermost where it is closed: throws `file-changed` where that has
  /// another parent by now.
  void open_parent();

  bool empty() const { return levels_.empty(); }
  std::size_t size() const { return levels_.size(); }
  Level& inner() { return levels_.back(); }
  Level& parent() { return levels_[levels_.size() - 2]; }
  static int fd(const Level& level) { return ::dirfd(level.stream.get()); }
  /// From the top to the innermost level.
  std::string path() const;
  const fs::path& shown() const { return shown_; }

 private:
  void close_outer();
  fs::path shown_;
  Again again_;
  std::vector<Level> levels_;
};

/// Opens a folder for listing: no link, and nothing that is mounted there. -1 with errno; EXDEV: a
/// mount.
Fd open_folder_in(int folder, const std::string& name);

}  // namespace mlenv
