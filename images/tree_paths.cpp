#include "images/tree_paths.hpp"

#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/tree_walk.hpp"

namespace mlenv {
namespace {

/// Where openat2 is missing (before Linux 5.6, or an old seccomp profile): no links at all.
int walk_without_links(int at, const std::string& path) {
  Fd folder{::openat(at, ".", kFolderFlags)};
  for (std::size_t begin = 0; folder && begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    const int next = ::openat(folder.get(), part.c_str(), kFolderFlags | O_NOFOLLOW);
    const int error = errno;
    folder = Fd{next};
    errno = error;
    begin = end + 1;
  }
  return folder.release();
}

}  // namespace

void check_layer_path(std::string_view path) {
  const bool climbs = path == ".." || path.starts_with("../") || path.ends_with("/..") ||
                      path.find("/../") != std::string_view::npos;
  if (path.empty() || path.front() == '/' || climbs || path.find('\0') != std::string_view::npos) {
    throw failure("bad-layer", "the path `{}` may not be in a layer", path);
  }
  // The kernel takes PATH_MAX bytes of what leads there from this machine's root.
  constexpr std::size_t kLongest = PATH_MAX - 512;
  if (path.size() > kLongest) {
    throw failure("bad-layer", "a path in the layer is too long: `{}`", short_path({}, path))
        .because(fmt::format("it has {} bytes, and at most {} can be used", path.size(), kLongest));
  }
}

void check_no_whiteout(std::string_view path) {
  if (path.starts_with(kWhiteoutPrefix) ||
      path.find("/" + std::string(kWhiteoutPrefix)) != std::string_view::npos) {
    throw failure("bad-layer", "a file named `{}` cannot be in a layer", path)
        .because("names with `.wh.` say there that another file is removed");
  }
}

bool has_opaque_mark(const fs::path& folder) {
  return std::any_of(kOpaqueMarks.begin(), kOpaqueMarks.end(), [&](const char* mark) {
    return ::getxattr(folder.c_str(), mark, nullptr, 0) > 0;
  });
}

int open_beneath(int at, const std::string& path) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kFolderFlags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  while (true) {
    const long fd = ::syscall(SYS_openat2, at, path.c_str(), &how, sizeof how);
    if (fd >= 0) return static_cast<int>(fd);
    if (errno == ENOSYS || errno == EPERM) return walk_without_links(at, path);
    // EAGAIN: a rename elsewhere disturbed the check of `..` (openat2(2)).
    if (errno != EAGAIN && errno != EINTR) return -1;
  }
}

}  // namespace mlenv
