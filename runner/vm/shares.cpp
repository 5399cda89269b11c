#include "runner/vm/shares.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv {
namespace {

std::ptrdiff_t mount_depth(const Mount& mount) {
  return std::count(mount.target.begin(), mount.target.end(), '/');
}

}  // namespace

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

void bind_share(const Mount& mount, const fs::path& place) {
  if (is_folder(mount.source)) {
    make_folders(place);
  } else {
    write_file(place, "", /*durable=*/false);
  }
  if (::mount(mount.source.c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
    throw usage_error("bad-mount", "cannot mount `{}` at `{}`", mount.source.string(), mount.target)
        .because(errno_text(errno));
  }
  if (!mount.read_only) return;
  mount_attr wanted{};
  wanted.attr_set = MOUNT_ATTR_RDONLY;
  if (::syscall(SYS_mount_setattr, AT_FDCWD, place.c_str(), AT_RECURSIVE, &wanted, sizeof wanted) !=
      0) {
    throw failure("bad-mount", "cannot show `{}` read-only", mount.source.string())
        .because(errno_text(errno));
  }
}

std::vector<Mount> in_order(const std::vector<Mount>& all) {
  std::vector<Mount> mounts;
  for (const Mount& one : all) {
    std::erase_if(mounts, [&](const Mount& other) { return other.target == one.target; });
    mounts.push_back(one);
  }
  std::stable_sort(mounts.begin(), mounts.end(),
                   [](const Mount& a, const Mount& b) { return mount_depth(a) < mount_depth(b); });
  return mounts;
}

}  // namespace mlenv
