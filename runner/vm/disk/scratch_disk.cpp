#include "runner/vm/disk/scratch_disk.hpp"

#include <sys/statvfs.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "runner/vm/disk/ext4_writer.hpp"

namespace mlenv {

std::uint64_t free_bytes(const fs::path& folder) {
  struct statvfs state {};
  if (::statvfs(folder.c_str(), &state) != 0) {
    throw os_error(errno, "cannot ask how much room `{}` has", folder.string());
  }
  return std::uint64_t{state.f_bavail} * state.f_frsize;
}

std::uint64_t usual_scratch_bytes(const fs::path& folder) {
  constexpr std::uint64_t kTenth = 10;
  constexpr std::uint64_t kMebi = std::uint64_t{1} << 20U;
  // More costs each start: ext4's own tables grow with it.
  constexpr std::uint64_t kMost = std::uint64_t{256} << 30U;
  const std::uint64_t free = free_bytes(folder);
  return std::clamp((free - free / kTenth) / kMebi * kMebi, kLeastScratch, kMost);
}

Fd make_scratch_disk(const fs::path& folder, std::uint64_t size_bytes) {
  const fs::path path = folder / "disk";
  Ext4Writer disk{path, size_bytes, Digest::of("mlenv.scratch-disk")};
  disk.finish();
  Fd file = open_file(path, O_RDWR);
  if (::unlink(path.c_str()) != 0) throw os_error(errno, "cannot remove `{}`", path.string());
  return file;
}

}  // namespace mlenv
