#pragma once
// Who owns what in a stack of layers, read from their tars: unpacked trees cannot say it where
// they belong to one user.
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

 private:
  void forget(const std::string& path, bool itself);
  Owners owners_;
  FileCapabilities capabilities_;
};

}  // namespace mlenv
