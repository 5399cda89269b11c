#pragma once
// Who owns what in a stack of layers, read from their tars: unpacked trees cannot say it where
// they belong to one user.
#include <set>
#include <string>

#include "base/sandbox/sandbox.hpp"
#include "base/tar.hpp"
#include "images/store.hpp"

namespace mlenv {

class ImageOwners {
 public:
  /// Puts a layer on top: what it replaces or removes is forgotten. Reads its whole tar.
  void add(const Store& store, const Layer& layer);
  /// One entry of a layer.
  void add(const TarEntry& entry);

  /// Paths whose owner is not 0:0.
  const Owners& owners() const { return owners_; }
  const FileCapabilities& capabilities() const { return capabilities_; }
  /// Folders of other owners that, in one of the layers at least, only these may list. Where one
  /// user id is all there is, overlayfs cannot look into them.
  const std::set<std::string>& shut_folders() const { return shut_folders_; }

 private:
  void forget(const std::string& path, bool itself);
  Owners owners_;
  FileCapabilities capabilities_;
  std::set<std::string> shut_folders_;
};

}  // namespace mlenv
