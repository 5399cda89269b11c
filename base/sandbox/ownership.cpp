#include "base/sandbox/ownership.hpp"

#include <fcntl.h>
#include <cerrno>
#include <climits>

#include "base/beneath.hpp"
#include "base/error.hpp"
#include "base/tree_walk.hpp"

namespace mlenv::sandbox {
namespace {

Fd open_in(int root, const std::string& path) {
  const std::size_t start = path.find_first_not_of('/');
  const std::string relative = start == std::string::npos ? "." : path.substr(start);
  return open_beneath(root, relative, O_PATH | O_NOFOLLOW, Links::none);
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
    Fd file = open_in(root, path);
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
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    // Of what lies deeper no layer could hold a path, and the build says so.
    if (entry.path.size() >= PATH_MAX) return false;
    collect_entry(entry.status, "/" + std::string(entry.path), owners, capabilities);
    return true;
  };
  walk.gone = [](std::string_view path) {
    throw os_error(ENOENT, "cannot read `{}`", short_path("/", path));
  };
  walk.enter_mounts = true;
  walk_tree(Fd{::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)}, "/", walk);
}

void Ownership::collect_entry(const struct stat& status, const std::string& path, Owners& owners,
                              FileCapabilities& capabilities) const {
  const FileRecord* known = find(id_of(status));
  if (known == nullptr) return;
  if (known->owner != Owner{}) owners.emplace(path, known->owner);
  if (!known->capability.empty()) capabilities.emplace(path, known->capability);
}

}  // namespace mlenv::sandbox
