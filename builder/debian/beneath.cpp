#include "builder/debian/beneath.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <array>
#include <cerrno>

#include "base/beneath.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"

namespace mlenv::debian {
namespace {

/// Those above them are looked at on the way.
constexpr std::array kFolders{"etc/apt",
                              "etc/ssh",
                              "etc/ssl/certs",
                              "etc/ssl/private",
                              "root",
                              "run/lock",
                              "tmp",
                              "usr/sbin",
                              "var/backups",
                              "var/cache/apt",
                              "var/cache/debconf",
                              "var/cache/fontconfig",
                              "var/cache/ldconfig",
                              "var/cache/man",
                              "var/lib/dbus",
                              "var/lib/dpkg/alternatives",
                              "var/lib/dpkg/info",
                              "var/lib/dpkg/parts",
                              "var/lib/dpkg/tmp.preinst",
                              "var/lib/dpkg/triggers",
                              "var/lib/dpkg/updates",
                              "var/lib/systemd",
                              "var/lib/ucf",
                              "var/lib/urandom",
                              "var/log",
                              "var/tmp"};
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;

}  // namespace

Fd open_real(int root, const std::string& path, int flags) {
  // With O_DIRECTORY, O_NOFOLLOW would make a link at the end ENOTDIR.
  const int nofollow = (flags & O_DIRECTORY) != 0 ? 0 : O_NOFOLLOW;
  return open_beneath(root, path, O_PATH | nofollow | flags, Links::none);
}

Fd open_real_parent(int root, const std::string& path) {
  const std::string_view folder = folder_of(path);
  return open_real(root, folder.empty() ? "." : std::string(folder), O_DIRECTORY);
}

std::optional<std::string> read_inside(int root, const std::string& path) {
  const Fd fd = open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, Links::inside);
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  FdSource source{fd.get()};
  return read_all(source, kMostBytes);
}

void require_real_folders(const fs::path& root) {
  const Fd fd = open_file(root, O_PATH | O_DIRECTORY);
  for (const char* folder : kFolders) {
    if (open_real(fd.get(), folder, O_DIRECTORY) || (errno != ELOOP && errno != EXDEV)) continue;
    throw failure("base-failed", "a package made `/{}`, or a folder above it, a link", folder)
        .because("the build writes there, and a link could lead out of the image")
        .hint("leave the package out, or report it to its maintainer");
  }
}

}  // namespace mlenv::debian
