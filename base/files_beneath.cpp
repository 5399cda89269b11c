#include "base/files_beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <utility>

#include "base/beneath.hpp"
#include "base/error.hpp"

namespace mlenv {
namespace {

constexpr int kReading = O_RDONLY | O_NONBLOCK | O_NOCTTY;  // no pipe is waited for

Error changed(const fs::path& path) {
  return failure("file-changed", "`{}` changed while it was read", path.string())
      .hint("run the command again when nothing writes there");
}

Fd require_file(Fd file, const fs::path& path) {
  if (!file) {
    const bool is_other = errno == ELOOP || errno == EXDEV || errno == ENOENT || errno == ENOTDIR;
    throw is_other ? changed(path) : os_error(errno, "cannot read `{}`", path.string());
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw os_error(errno, "cannot read `{}`", path.string());
  if (!S_ISREG(status.st_mode)) throw changed(path);
  return file;
}

}  // namespace

Fd open_folder(const fs::path& path) { return open_file(path, O_PATH | O_DIRECTORY); }

Fd open_file_beneath(int folder, const std::string& path) {
  constexpr int kFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  Fd file = open_beneath(folder, path, kFlags, Links::none);
  struct stat status {};
  if (!file || (::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode))) return file;
  errno = EINVAL;
  return {};
}

std::optional<std::string> read_file_beneath(int folder, const std::string& path,
                                             std::uint64_t limit) {
  const Fd file = open_file_beneath(folder, path);
  if (!file) return std::nullopt;
  FdSource source{file.get()};
  return read_all(source, limit);
}

Fd open_canonical(const fs::path& path, int flags) {
  const Fd root{::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!root) return {};
  const std::string below = path.relative_path().string();
  return open_beneath(root.get(), below.empty() ? "." : below, flags, Links::none);
}

Fd open_canonical_folder(const fs::path& path) {
  Fd folder = open_canonical(path, O_RDONLY | O_DIRECTORY);
  if (!folder) throw os_error(errno, "cannot read `{}`", path.string());
  return folder;
}

Fd open_canonical_file(const fs::path& path) {
  return require_file(open_canonical(path, kReading), path);
}

Fd open_file_of_set(const fs::path& set, const std::string& path) {
  if (path.empty()) return require_file(Fd{::open(set.c_str(), kReading | O_CLOEXEC)}, set);
  const Fd folder = open_folder(set);
  return require_file(open_beneath(folder.get(), path, kReading, Links::below), set / path);
}

std::string read_link_at(int folder, const std::string& name) {
  std::optional<std::string> target = link_at(folder, name);
  if (!target) throw os_error(errno, "cannot read the link `{}`", name);
  return *std::move(target);
}

}  // namespace mlenv
