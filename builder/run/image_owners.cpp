#include "builder/run/image_owners.hpp"

#include "images/tree_paths.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kCapability = "security.capability";

/// `path` and what is below it, or that alone.
template <typename Map>
void erase_below(Map& map, const std::string& path, bool itself) {
  if (itself) map.erase(path);
  const std::string prefix = path.ends_with('/') ? path : path + "/";
  auto at = map.lower_bound(prefix);
  while (at != map.end() && at->first.starts_with(prefix)) at = map.erase(at);
}

}  // namespace

void ImageOwners::forget(const std::string& path, bool itself) {
  erase_below(owners_, path, itself);
  erase_below(capabilities_, path, itself);
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
  if (owner != Owner{}) owners_[path] = owner;
  const auto capability = entry.xattrs.find(std::string(kCapability));
  if (capability != entry.xattrs.end()) capabilities_[path] = capability->second;
}

void ImageOwners::add(const Store& store, const Layer& layer) {
  read_layer(
      store, layer, [](std::uint64_t) {}, [this](const TarEntry& entry, Source&) { add(entry); });
}

}  // namespace mlenv
