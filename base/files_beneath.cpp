#include "base/files_beneath.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>

#include "base/beneath.hpp"

namespace mlenv {

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

}  // namespace mlenv
