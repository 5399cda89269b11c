#include "images/shut_folders.hpp"

#include <fcntl.h>
#include <cerrno>

#include "base/error.hpp"

namespace mlenv {
namespace {

/// By trying: access(2) does not count capabilities.
bool may_list(const fs::path& folder) {
  const Fd fd{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  return fd && Fd{::openat(fd.get(), ".", O_PATH | O_CLOEXEC)};
}

}  // namespace

ShutFolders::~ShutFolders() {
  // The inner ones first, as long as their parents let us through.
  for (auto one = modes_.rbegin(); one != modes_.rend(); ++one) {
    (void)::chmod((root_ / one->first).c_str(), one->second);
  }
}

bool ShutFolders::status(const std::string& path, struct stat& status) {
  int result = ::lstat((root_ / path).c_str(), &status);
  if (result != 0 && errno == EACCES && open_up_parents(path)) {
    result = ::lstat((root_ / path).c_str(), &status);
  }
  if (result != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    throw os_error(errno, "cannot read `{}`", (root_ / path).string());
  }
  const auto opened = modes_.find(path);
  if (opened != modes_.end()) status.st_mode = (status.st_mode & S_IFMT) | opened->second;
  return true;
}

/// Whether anything was done.
bool ShutFolders::open_up_parents(const std::string& path) {
  const std::size_t before = modes_.size();
  for (std::size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    open_up(path.substr(0, slash));
  }
  return modes_.size() > before;
}

void ShutFolders::open_up(const std::string& path) {
  struct stat found {};
  if (modes_.contains(path) || !status(path, found)) return;
  if (!S_ISDIR(found.st_mode) || may_list(root_ / path)) return;
  const mode_t mode = found.st_mode & 07777U;
  if (::chmod((root_ / path).c_str(), mode | S_IRWXU) == 0) modes_.emplace(path, mode);
}

Fd ShutFolders::open_file(const std::string& path) {
  const fs::path whole = root_ / path;
  Fd fd{::open(whole.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  struct stat found {};
  if (fd || errno != EACCES || !status(path, found)) {
    return fd ? std::move(fd) : mlenv::open_file(whole, O_RDONLY | O_NOFOLLOW);
  }
  (void)::chmod(whole.c_str(), (found.st_mode & 07777U) | S_IRUSR);
  fd = Fd{::open(whole.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)};
  const int error = errno;
  (void)::chmod(whole.c_str(), found.st_mode & 07777U);
  if (!fd) throw os_error(error, "cannot read `{}`", whole.string());
  return fd;
}

}  // namespace mlenv
