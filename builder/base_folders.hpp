#pragma once
// What a layer on top must know of the base below it: where its folders and links are. A folder's
// entry in a layer sets its mode for the whole image, and one at a link's path puts a folder in the
// link's place.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "images/store.hpp"

namespace mlenv {

struct BaseFolder {
  std::string link;  ///< not empty: no folder but a link, to this
  std::uint32_t mode = 0755;
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
};
/// By path, relative to the image's root.
using BaseFolders = std::map<std::string, BaseFolder, std::less<>>;

/// Of a base's layers in the store, lowest first, as a container sees them: read from their tars
/// once, remembered in the store. Names that are not UTF-8 are left out.
BaseFolders base_folders(Store& store, const std::vector<Layer>& base);

}  // namespace mlenv
