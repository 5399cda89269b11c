#include "runner/local/throwaway.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr mode_t kFolderMode = 0755;

/// Removes `within` below the mounted layer. No link is followed on the way: behind it the person's
/// own files may lie.
void clear(const fs::path& root, const FreshPath& fresh) {
  Fd folder = open_file(root, O_PATH | O_DIRECTORY);
  const fs::path parent = fs::path(fresh.within).parent_path();
  for (const fs::path& part : parent) {
    Fd next{::openat(folder.get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!next && errno == ENOENT) return;
    if (!next) throw os_error(errno, "cannot enter `{}`", (root / parent).string());
    folder = std::move(next);
  }
  if (parent.empty()) folder = open_file(root, O_RDONLY | O_DIRECTORY);
  const std::string name = fs::path(fresh.within).filename().string();
  struct stat status {};
  const bool is_there = ::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_there) return;
  remove_tree_at(folder.get(), name);
  if (!fresh.existed || !S_ISDIR(status.st_mode)) return;
  if (::mkdirat(folder.get(), name.c_str(), kFolderMode) != 0) {
    throw os_error(errno, "cannot make the folder `{}`", (root / fresh.within).string());
  }
}

/// The layer's top is as the source itself, so that whoever could write there still can.
void like(const fs::path& source, const fs::path& upper) {
  struct stat status {};
  if (::stat(source.c_str(), &status) != 0) return;
  (void)!::chown(upper.c_str(), status.st_uid, status.st_gid);  // other ids may not exist here
  (void)!::chmod(upper.c_str(), status.st_mode & static_cast<mode_t>(~S_IFMT));
}

class ThrowawayLayer {
 public:
  ThrowawayLayer(const LocalRun& run, std::size_t index, bool user_xattr)
      : upper_(throwaway_folder(run.scratch, index)), user_xattr_(user_xattr) {
    for (const FreshPath& one : run.fresh) {
      if (one.mount == index) fresh_.push_back(one);
    }
  }

  /// What to mount in the source's place.
  fs::path over(const fs::path& source) const {
    make_folders(upper_.parent_path());
    const bool all_fresh = std::any_of(fresh_.begin(), fresh_.end(),
                                       [](const FreshPath& one) { return one.within.empty(); });
    if (!fs::is_directory(source)) {
      if (all_fresh) {
        write_file(upper_, "", /*durable=*/false);
      } else {
        fs::copy_file(source, upper_);
      }
      like(source, upper_);
      return upper_;
    }
    make_folders(upper_);
    like(source, upper_);
    if (all_fresh) return upper_;
    fs::path root = mount_overlay({{source}, upper_.parent_path(), user_xattr_});
    for (const FreshPath& one : fresh_) clear(root, one);
    return root;
  }

 private:
  fs::path upper_;
  bool user_xattr_;
  std::vector<FreshPath> fresh_;
};

}  // namespace

fs::path throwaway_folder(const fs::path& scratch, std::size_t mount) {
  return scratch / "mounts" / std::to_string(mount) / "upper";
}

std::vector<Mount> under_throwaway_layers(const LocalRun& run, std::vector<Mount> mounts,
                                          bool user_xattr) {
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    if (mounts[i].read_only) continue;
    const fs::path source = mounts[i].source;
    mounts[i].source =
        while_doing(fmt::format("giving the run a throwaway layer over `{}`", source.string()),
                    [&] { return ThrowawayLayer(run, i, user_xattr).over(source); });
  }
  return mounts;
}

}  // namespace mlenv
