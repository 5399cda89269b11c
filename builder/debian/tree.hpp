#pragma once
// The root folder, filled package by package as dpkg does it.
#include <sys/types.h>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "base/sandbox/sandbox.hpp"
#include "builder/debian/package.hpp"

namespace mlenv::debian {

class Tree {
 public:
  /// `root` is empty. Makes the links of a merged /usr for `architecture`.
  Tree(fs::path root, const std::string& architecture);

  /// Moves the files of `packages[index]` from `staging` to their places: an existing folder (or
  /// link to one) stays as it is; a file of another package is taken over where one of the two has
  /// `Replaces`, and left to `settle` where not.
  void merge(const std::vector<Package>& packages, std::size_t index, const fs::path& staging);
  /// Gives the folders their modes. After the last merge.
  void finish_folders();

  /// After preinst scripts have run: files that they took away, or moved by a diversion, come back
  /// to where dpkg would have unpacked them. `files[i]` is the archive of `packages[i]`. With
  /// `last`, throws `base-failed` for a path that two packages ship and no diversion settles.
  void settle(const std::vector<Package>& packages, const std::vector<fs::path>& files,
              const fs::path& scratch, bool last);

  /// Paths that `packages[index]` ships but another package's file took (as in the archive).
  const std::set<std::string>& lost(std::size_t index) { return lost_[index]; }

  /// Where an archive's path lies, through the links in the tree: `bin/sh` → `usr/bin/sh`. Throws
  /// `base-failed` for one with `..`, as a diversion may name.
  std::string canonical(const std::string& path);

  const fs::path& root() const { return root_; }
  const Owners& owners() const { return owners_; }
  void set_owners(Owners owners) { owners_ = std::move(owners); }

 private:
  bool move_in(int from, const std::string& entry, const std::string& path) const;
  void put_folder(const TarEntry& entry, const std::string& path);
  bool may_take(const std::vector<Package>& packages, std::size_t index, const TarEntry& entry,
                const std::string& path);
  void note_owner(const TarEntry& entry, const std::string& path);
  std::string resolved_folder(const std::string& folder, int depth);
  std::map<std::string, std::string> moves_of(std::size_t index,
                                              const std::vector<Package>& packages, bool last);
  bool present(const std::string& path) const;

  fs::path root_;
  Fd fd_;
  Owners owners_;
  std::map<std::string, std::uint32_t> folder_modes_;
  std::map<std::string, std::size_t> holders_;              // canonical path → package
  std::map<std::string, std::set<std::size_t>> contested_;  // canonical path → packages
  std::map<std::size_t, std::set<std::string>> lost_;
  std::map<std::string, std::string> folders_;  // memory of resolved_folder
};

/// A file that the build itself writes there.
void write_with_mode(const fs::path& path, std::string_view text, mode_t mode);

}  // namespace mlenv::debian
