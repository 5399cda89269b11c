#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "builder/debian.hpp"
#include "builder/layers.hpp"
#include "builder/tree_layer.hpp"

namespace mlenv {
namespace {

/// chown(2) takes capabilities away: they come after the owners. Where the file system has none,
/// the tree goes without, as it does for an ordinary user.
void set_capabilities(const fs::path& root, const FileCapabilities& capabilities) {
  for (const auto& [path, value] : capabilities) {
    const fs::path at = root / fs::path(path).relative_path();
    (void)::lsetxattr(at.c_str(), "security.capability", value.data(), value.size(), 0);
  }
}

/// The tree was made by one user; where that is root, the owners can be real.
void set_owners(const fs::path& root, const Owners& owners) {
  for (const auto& [path, owner] : owners) {
    const fs::path at = root / fs::path(path).relative_path();
    struct stat status {};
    if (::lstat(at.c_str(), &status) != 0) throw os_error(errno, "cannot read `{}`", path);
    if (::lchown(at.c_str(), owner.uid, owner.gid) != 0) {
      throw os_error(errno, "cannot give `{}` to {}:{}", path, owner.uid, owner.gid);
    }
    // chown(2) clears setuid and setgid.
    if (!S_ISLNK(status.st_mode) && ::chmod(at.c_str(), status.st_mode & 07777U) != 0) {
      throw os_error(errno, "cannot set the mode of `{}`", path);
    }
  }
}

}  // namespace

Layer make_base_layer(const Lock& lock, const std::vector<fs::path>& packages, Store& store,
                      Pool& pool, Progress& progress) {
  Store::StagedTree staged = store.stage_tree();
  const DebianBase base = build_debian_base(lock, packages, staged.fs_path(), progress);
  Activity activity{progress, "pack the base", 0, ""};
  Layer layer = pack_tree({staged.fs_path(), base.owners, base.capabilities, lock.epoch,
                           fmt::format("{}:{}", lock.distribution, lock.suite)},
                          store, pool);
  if (::geteuid() == 0) {
    set_owners(staged.fs_path(), base.owners);
    set_capabilities(staged.fs_path(), base.capabilities);
  }
  staged.publish(layer.diff_id);
  return layer;
}

}  // namespace mlenv
