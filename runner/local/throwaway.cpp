#include "runner/local/throwaway.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "runner/local/held_mounts.hpp"

namespace mlenv {
namespace {

constexpr mode_t kFreshFolderMode = 0755;

/// The layer's top is as the source itself, so that whoever could write there still can.
void liken_upper(const fs::path& source, const fs::path& upper) {
  struct stat status {};
  if (::stat(source.c_str(), &status) != 0) return;
  (void)!::chown(upper.c_str(), status.st_uid, status.st_gid);  // other ids may not exist here
  (void)!::chmod(upper.c_str(), status.st_mode & static_cast<mode_t>(~S_IFMT));
}

}  // namespace

fs::path throwaway_mounts_folder(const fs::path& scratch) { return scratch / "mounts"; }

fs::path throwaway_folder(const fs::path& scratch, std::size_t mount) {
  return throwaway_mounts_folder(scratch) / std::to_string(mount) / "upper";
}

void clear_fresh(Fd root, const fs::path& shown, const FreshPath& fresh) {
  Fd folder = std::move(root);
  const fs::path parent = fs::path(fresh.within).parent_path();
  for (const fs::path& part : parent) {
    Fd next{::openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!next && errno == ENOENT) return;
    if (!next) throw os_error(errno, "cannot enter `{}`", (shown / parent).string());
    folder = std::move(next);
  }
  const std::string name = fs::path(fresh.within).filename().string();
  struct stat status {};
  const bool is_there = ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there) return;
  remove_tree_at(folder.get(), name);
  if (!fresh.existed || !S_ISDIR(status.st_mode)) return;
  if (::mkdirat(folder.get(), name.c_str(), kFreshFolderMode) != 0) {
    throw os_error(errno, "cannot make the folder `{}`", (shown / fresh.within).string());
  }
}

ThrowawayLayer throwaway_layer(const LocalRun& run, std::size_t index, const fs::path& source) {
  const fs::path upper = throwaway_folder(run.scratch, index);
  ThrowawayLayer layer{source, upper, upper.parent_path() / "work", {}};
  for (const FreshPath& one : run.fresh) {
    if (one.mount == index) layer.fresh.push_back(one);
  }
  make_folders(upper.parent_path());
  const bool all_fresh = std::any_of(layer.fresh.begin(), layer.fresh.end(),
                                     [](const FreshPath& one) { return one.within.empty(); });
  const bool is_folder = fs::is_directory(source);
  if (is_folder) {
    make_folders(upper);
  } else if (all_fresh) {
    write_file(upper, "", /*durable=*/false);
  } else {
    fs::copy_file(source, upper);
  }
  liken_upper(source, upper);
  if (!is_folder || all_fresh) return {upper, {}, {}, {}};
  return layer;
}

namespace {

fs::path mounted(const ThrowawayLayer& layer, bool user_xattr) {
  if (layer.upper.empty()) return layer.source;
  fs::path root = mount_overlay({{layer.source}, layer.upper.parent_path(), user_xattr});
  for (const FreshPath& one : layer.fresh) {
    clear_fresh(open_file(root, O_RDONLY | O_DIRECTORY), root, one);
  }
  return root;
}

}  // namespace

std::vector<Mount> under_throwaway_layers(const LocalRun& run, std::vector<Mount> mounts,
                                          bool user_xattr) {
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (mounts[i].read_only) continue;
    const std::string shown = mounts[i].source.string();
    const fs::path folder = throwaway_folder(run.scratch, i).parent_path();
    make_folders(folder);
    bind_settled(run, mounts[i], folder / "source");
    mounts[i].source =
        while_doing(fmt::format("giving the run a throwaway layer over `{}`", shown),
                    [&] { return mounted(throwaway_layer(run, i, mounts[i].source), user_xattr); });
  }
  return mounts;
}

}  // namespace mlenv
