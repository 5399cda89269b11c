#pragma once
// All that lies in a store, and what of it needs what: digests are followed wherever they stand in
// the texts of manifests, configs and indexes, so that what this mlenv does not know is followed
// all the same. For images/store*.cpp only.
#include <chrono>
#include <map>
#include <set>
#include <vector>

#include "images/store_folder.hpp"

namespace mlenv {

using UseTime = std::chrono::system_clock::time_point;

/// Something of the store.
struct Thing {
  StoreFolder::Item kind = StoreFolder::Item::blob;
  Digest digest;
  std::uint64_t bytes = 0;  ///< 0 of a tree, which nobody has measured
  UseTime used;             ///< by itself, or by what needs it
  bool is_text = false;     ///< a manifest, index or config, perhaps
};

/// The same digest may be a blob and a layer.
using Things = std::multimap<Digest, Thing>;

class Inventory {
 public:
  /// Reads all of the store's folders. Where something cannot be looked at it throws: what is not
  /// known is not to be taken for garbage.
  explicit Inventory(StoreFolder& folder);

  Things& things() { return things_; }
  /// Marks it and all that it leads to.
  void mark(const Digest& digest, std::set<Digest>& marked) const;
  /// What something needs was used when it was.
  void pass_on_use(const Digest& digest);
  /// Or an index.
  bool is_manifest(const Thing& thing) const;

 private:
  void list(const char* folder, StoreFolder::Item kind);
  UseTime used_of(const Digest& digest) const;
  std::vector<Digest> needs_of(const Digest& digest) const;
  std::vector<Digest> slices_of(const Digest& layer) const;

  StoreFolder& folder_;
  Things things_;
};

/// On the disk (st_blocks, stat(2)): of a file, unless somebody else has it too; of a folder all
/// that it holds, each file once.
std::uint64_t bytes_of_file(const struct stat& status);
std::uint64_t bytes_of_tree(const fs::path& folder);

}  // namespace mlenv
