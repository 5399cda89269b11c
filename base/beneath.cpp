#include "base/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

namespace mlenv {
namespace {

constexpr int kFolderPlace = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLinks = 40;   // path_resolution(7)
constexpr int kMostTries = 128;  // EAGAIN: a rename elsewhere disturbed the check of `..`

std::uint64_t resolution(Links links) {
  switch (links) {
    case Links::inside:
      return RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    case Links::below:
      return RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    case Links::none:
      break;
  }
  return RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
}

Fd failed(int error) {
  errno = error;
  return {};
}

class Walk {
 public:
  Walk(int root, Links links) : links_(links) {
    way_.emplace_back(::openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

  Fd open(const std::string& path, int flags, mode_t mode) {
    if (path.empty()) return failed(ENOENT);
    if (!way_.front()) return {};
    if (path.back() == '/') flags |= O_DIRECTORY;
    if (!go_on(path)) return failed(EXDEV);
    while (!rest_.empty()) {
      const std::string part = std::move(rest_.front());
      rest_.pop_front();
      if (part == "..") {
        if (!go_up()) return failed(EXDEV);
        continue;
      }
      Fd next = rest_.empty() ? open_last(part, flags, mode) : enter(part);
      if (!next && !follow(part, rest_.empty() && (flags & O_NOFOLLOW) != 0)) return {};
      if (next && rest_.empty()) return next;
      if (next) way_.push_back(std::move(next));
    }
    return Fd{::openat(way_.back().get(), ".", (flags & ~(O_NOFOLLOW | O_CREAT)) | O_CLOEXEC)};
  }

 private:
  Fd enter(const std::string& part) const {
    return Fd{::openat(way_.back().get(), part.c_str(), kFolderPlace)};
  }

  /// Not a link, unless that is wanted.
  Fd open_last(const std::string& part, int flags, mode_t mode) const {
    Fd fd{::openat(way_.back().get(), part.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode)};
    struct stat status {};
    const bool may_be_link = fd && (flags & O_PATH) != 0 && (flags & O_NOFOLLOW) == 0;
    if (may_be_link && ::fstat(fd.get(), &status) == 0 && S_ISLNK(status.st_mode)) {
      return failed(ELOOP);
    }
    return fd;
  }

  /// What could not be entered was perhaps a link. False, and errno: it was none, or one that is
  /// not to be followed.
  bool follow(const std::string& part, bool refused) {
    const int error = errno;
    if (error != ELOOP && error != ENOTDIR) return false;
    const std::optional<std::string> target = link_at(way_.back().get(), part);
    if (!target || refused) {
      errno = error;
    } else if (links_ == Links::none || ++count_ > kMostLinks) {
      errno = ELOOP;
    } else if (!go_on(*target)) {
      errno = EXDEV;
    } else {
      return true;
    }
    return false;
  }

  /// From here, or from the root; false where that leads out.
  bool go_on(std::string_view path) {
    if (path.starts_with('/')) {
      if (links_ != Links::inside) return false;
      way_.erase(way_.begin() + 1, way_.end());
    }
    std::vector<std::string> parts;
    while (!path.empty()) {
      const std::size_t slash = path.find('/');
      const std::string_view part = path.substr(0, slash);
      if (!part.empty() && part != ".") parts.emplace_back(part);
      path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
    }
    rest_.insert(rest_.begin(), parts.begin(), parts.end());
    return true;
  }

  bool go_up() {
    if (way_.size() > 1) {
      way_.pop_back();
      return true;
    }
    return links_ == Links::inside;
  }

  Links links_;
  std::vector<Fd> way_;  ///< the root, and the folders from there on
  std::deque<std::string> rest_;
  int count_ = 0;
};

}  // namespace

Fd walk_beneath(int root, const std::string& path, int flags, Links links, mode_t mode) {
  return Walk{root, links}.open(path, flags, mode);
}

Fd open_beneath(int root, const std::string& path, int flags, Links links, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = resolution(links);
  for (int tries = 0; tries < kMostTries; ++tries) {
    const long fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd{static_cast<int>(fd)};
    if (errno == ENOSYS || errno == EPERM) break;
    if (errno != EAGAIN && errno != EINTR) return {};
  }
  return walk_beneath(root, path, flags, links, mode);
}

std::optional<std::string> link_at(int folder, const std::string& name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
  if (size < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
}

}  // namespace mlenv
