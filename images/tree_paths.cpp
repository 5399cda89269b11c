#include "images/tree_paths.hpp"

#include <sys/xattr.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/beneath.hpp"
#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/tree_walk.hpp"

namespace mlenv {

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

bool is_whiteout(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == 0;
}

bool has_opaque_mark(const fs::path& folder) {
  return std::any_of(kOpaqueMarks.begin(), kOpaqueMarks.end(), [&](const char* mark) {
    return ::getxattr(folder.c_str(), mark, nullptr, 0) > 0;
  });
}

int open_beneath(int at, const std::string& path) {
  return open_beneath(at, path, kFolderFlags, Links::below).release();
}

}  // namespace mlenv
