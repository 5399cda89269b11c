#include "runner/engine/engine_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>

#include "base/paths.hpp"

namespace mlenv {

void KeeperWriter::write(const std::string& path, std::string_view text, mode_t mode) {
  if (is_mounted(path)) return;
  keeper::FileHead head{mode, 0, 0};
  if (user_ && is_beneath(path, user_->home)) {
    head.uid = user_->uid;
    head.gid = user_->gid;
    const std::string folder = fs::path(path).parent_path().string();
    // Those above it are made on the way, theirs as well.
    for (fs::path above = user_->home;
         const fs::path& name : fs::path(folder).lexically_relative(user_->home)) {
      if (name == ".") break;
      above /= name;
      keeper_.make_folder(above.string(), {head.uid, head.gid, 0});
    }
  }
  keeper_.write(path, text, head);
}

void KeeperWriter::make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) {
  if (!is_mounted(path)) keeper_.make_folder(path, {uid, gid, 0});
}

bool KeeperWriter::is_mounted(const std::string& path) const {
  return std::any_of(mounts_.begin(), mounts_.end(),
                     [&](const Mount& one) { return is_beneath(path, one.target); });
}

void MountWriter::write(const std::string& path, std::string_view text, mode_t mode) {
  make_folders(folder_);
  const fs::path file = folder_ / std::to_string(mounts_.size());
  const Fd fd = open_file(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  write_all(fd.get(), as_bytes(text));
  (void)::fchmod(fd.get(), mode);
  std::erase_if(mounts_, [&](const Mount& one) { return one.target == path; });
  mounts_.push_back({file, path, true});
}

void MountWriter::make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) {
  (void)path;
  (void)uid;
  (void)gid;
}

}  // namespace mlenv
