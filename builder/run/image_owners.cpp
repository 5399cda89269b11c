#include "builder/run/image_owners.hpp"

#include "images/tree_paths.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kCapability = "security.capability";

const std::string& path_of(const std::string& one) { return one; }
template <typename Value>
const std::string& path_of(const std::pair<const std::string, Value>& one) {
  return one.first;
}

/// `path` and what is below it, or that alone.
template <typename Paths>
void erase_below(Paths& paths, const std::string& path, bool itself) {
  if (itself) paths.erase(path);
  const std::string prefix = path.ends_with('/') ? path : path + "/";
  auto at = paths.lower_bound(prefix);
  while (at != paths.end() && path_of(*at).starts_with(prefix)) at = paths.erase(at);
}

/// Whether user 0 of group 0 may not list the folder, or not look into it, when its owner is no
/// reason to let it (capabilities do not count for owners outside of a namespace).
bool is_shut(const TarEntry& folder) {
  constexpr std::uint32_t kListed = 05;
  const unsigned shift = folder.uid == 0 ? 6 : folder.gid == 0 ? 3 : 0;
  return ((folder.mode >> shift) & kListed) != kListed;
}

}  // namespace

void ImageOwners::forget(const std::string& path, bool itself) {
  erase_below(owners_, path, itself);
  erase_below(capabilities_, path, itself);
  erase_below(shut_folders_, path, itself);
}

void ImageOwners::add(const TarEntry& entry) {
  const std::string path = entry.path == "." ? "/" : "/" + entry.path;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  const std::string name = path.substr(slash + 1);
  if (name == kOpaqueName) return forget(folder, false);
  if (name.starts_with(kWhiteoutPrefix)) {
    return forget(path.substr(0, slash + 1) + name.substr(kWhiteoutPrefix.size()), true);
  }
  if (entry.type == TarEntry::Type::folder) {
    owners_.erase(path);
  } else {
    forget(path, true);
  }
  const Owner owner{static_cast<std::uint32_t>(entry.uid), static_cast<std::uint32_t>(entry.gid)};
  if (owner != Owner{}) {
    owners_[path] = owner;
    if (entry.type == TarEntry::Type::folder && is_shut(entry)) shut_folders_.insert(path);
  }
  const auto capability = entry.xattrs.find(std::string(kCapability));
  if (capability != entry.xattrs.end()) capabilities_[path] = capability->second;
}

void ImageOwners::add(const Store& store, const Layer& layer) {
  read_layer(
      store, layer, [](std::uint64_t) {}, [this](const TarEntry& entry, Source&) { add(entry); });
}

}  // namespace mlenv
