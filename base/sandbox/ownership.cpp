#include "base/sandbox/ownership.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/folder_entries.hpp"

namespace mlenv::sandbox {
namespace {

using Folder = Owned<::closedir>::of<DIR>;

FileId id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }

Fd open_beneath(int root, const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const std::size_t start = path.find_first_not_of('/');
  const std::string relative = start == std::string::npos ? "." : path.substr(start);
  return Fd{static_cast<int>(::syscall(SYS_openat2, root, relative.c_str(), &how, sizeof how))};
}

}  // namespace

void Ownership::keep(FileId id, FileRecord record) {
  if (record.owner == Owner{} && record.capability.empty()) {
    records_.erase(id);
  } else {
    records_[id] = std::move(record);
  }
}

void Ownership::change_owner(FileId id, Fd file, std::optional<std::uint32_t> uid,
                             std::optional<std::uint32_t> gid) {
  Owner owner;
  if (const FileRecord* known = find(id)) owner = known->owner;
  if (uid) owner.uid = *uid;
  if (gid) owner.gid = *gid;
  keep(id, {owner, {}, std::move(file)});
}

void Ownership::set_capability(FileId id, Fd file, std::string value) {
  Owner owner;
  if (const FileRecord* known = find(id)) owner = known->owner;
  keep(id, {owner, std::move(value), std::move(file)});
}

bool Ownership::remove_capability(FileId id) {
  const auto found = records_.find(id);
  if (found == records_.end() || found->second.capability.empty()) return false;
  found->second.capability.clear();
  if (found->second.owner == Owner{}) records_.erase(found);
  return true;
}

void Ownership::load(int root, const Owners& initial) {
  for (const auto& [path, owner] : initial) {
    Fd file = open_beneath(root, path);
    struct stat status {};
    if (!file && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) continue;
    if (!file || ::fstat(file.get(), &status) != 0) {
      throw os_error(errno, "cannot hold `{}` open to remember its owner", path);
    }
    keep(id_of(status), {owner, {}, std::move(file)});
  }
}

void Ownership::collect(int root, Owners& owners, FileCapabilities& capabilities) const {
  if (records_.empty()) return;
  struct stat status {};
  if (::fstat(root, &status) != 0) throw os_error(errno, "cannot read the root folder");
  collect_entry(status, "/", owners, capabilities);
  collect_folder(root, "/", owners, capabilities);
}

void Ownership::collect_entry(const struct stat& status, const std::string& path, Owners& owners,
                              FileCapabilities& capabilities) const {
  const FileRecord* known = find(id_of(status));
  if (known == nullptr) return;
  if (known->owner != Owner{}) owners.emplace(path, known->owner);
  if (!known->capability.empty()) capabilities.emplace(path, known->capability);
}

void Ownership::collect_folder(int folder, const std::string& path, Owners& owners,
                               FileCapabilities& capabilities) const {
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const Folder stream{copy < 0 ? nullptr : ::fdopendir(copy)};
  if (!stream) throw os_error(errno, "cannot list `{}`", path);
  while (const dirent* entry = next_entry(stream.get(), path)) {
    const std::string_view name = entry->d_name;
    struct stat status {};
    if (::fstatat(copy, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      throw os_error(errno, "cannot read `{}{}`", path, name);
    }
    const std::string child = path + std::string(name);
    collect_entry(status, child, owners, capabilities);
    if (!S_ISDIR(status.st_mode)) continue;
    const Fd next{::openat(copy, entry->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!next) throw os_error(errno, "cannot open `{}`", child);
    collect_folder(next.get(), child + "/", owners, capabilities);
  }
}

}  // namespace mlenv::sandbox
