#pragma once
// Compares an unpacked tree with the tar it came from: the same paths, types, sizes, contents, link
// targets and modes; owners too where they can have been set.
#include <sys/types.h>
#include <map>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/tar.hpp"
#include "images/shut_folders.hpp"

namespace mlenv {

/// As stat(2) tells the type: `S_IFDIR`. A hard link is a file.
mode_t type_bits(TarEntry::Type type);

class TreeCheck {
 public:
  explicit TreeCheck(fs::path root);
  /// Each entry of the layer, in order.
  void take(const TarEntry& entry, Source& data);
  /// The first difference (by path), or nullopt.
  std::optional<std::string> finish();

 private:
  void expect(const std::string& path, std::string flaw);
  void take_whiteout(const std::string& folder, const std::string& name);
  std::string compare(const TarEntry& entry, Source& data);
  std::string compare_attributes(const TarEntry& entry, const struct stat& status) const;

  fs::path root_;
  bool owners_;
  ShutFolders files_;
  struct Expected {
    std::string flaw;  ///< what is wrong there, or nothing
    bool is_there = false;
  };
  std::map<std::string, Expected, std::less<>> expected_;  ///< by path
};

}  // namespace mlenv
