#include "builder/lay_over.hpp"

#include "base/tree_walk.hpp"

namespace mlenv {

void lay_over(const fs::path& from, const fs::path& to) {
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const fs::path source = from / entry.path;
    const fs::path target = to / entry.path;
    const bool link = S_ISLNK(entry.status.st_mode);
    if (link || fs::is_symlink(target)) fs::remove(target);
    if (link) {
      fs::copy_symlink(source, target);
    } else if (S_ISDIR(entry.status.st_mode)) {
      fs::create_directory(target, source);
    } else {
      fs::copy_file(source, target, fs::copy_options::overwrite_existing);
    }
    return true;
  };
  walk_tree(from, walk);
}

}  // namespace mlenv
