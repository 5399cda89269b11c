#pragma once
// The files that a lock names, and where they lie beside package sources: folders of vendored
// copies, archives of snapshots (docs/lock.md, "Where inputs come from").
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "images/store.hpp"
#include "recipes/lock.hpp"

namespace mlenv {

struct LockedFile {
  std::string file;  ///< its name
  std::uint64_t size_bytes = 0;
  Digest digest;
  std::string path{};  ///< of a Debian package: below the archive's root; else empty
};

LockedFile locked_file(const LockedWheel& wheel);
LockedFile locked_file(const LockedDeb& deb);
LockedFile locked_file(const LockedSource& source);
LockedFile locked_file(const LockedPython& python);
/// Config and layers of a base that is an image, called by their digests.
std::vector<LockedFile> base_files(const LockedBase& base);

/// Whether `path` is a file of these very bytes; false where there is none.
bool is_intact(const fs::path& path, std::uint64_t size_bytes, const Digest& digest);

/// Folders that may hold copies, each called by the file's name, or by the digest in hex where two
/// of a name were vendored. Folders that are absent hold nothing.
class VendorFolders {
 public:
  VendorFolders() = default;
  explicit VendorFolders(std::vector<fs::path> folders) : folders_(std::move(folders)) {}
  /// The first of that size; whether it is of that digest is for whoever reads it.
  std::optional<fs::path> find(const LockedFile& file) const;
  /// Every one of that size.
  std::vector<fs::path> all(const LockedFile& file) const;

 private:
  std::vector<fs::path> folders_;
};

/// Puts an intact copy of a file that the store lacks into it; false where there is none.
bool keep_vendored(Store& store, const VendorFolders& folders, const LockedFile& file);

/// Where archives of snapshots would have it: `{path}`, `{file}` and `{sha256}` filled in; without
/// any of these, below the archive's root. What has no path is not looked for by path.
std::vector<std::string> snapshot_urls(const LockedFile& file,
                                       const std::vector<std::string>& archives);

}  // namespace mlenv
