#pragma once
// Who owns what, as the program in the sandbox believes it: by inode, since files are renamed and
// linked.
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include <sys/stat.h>

#include "base/handle.hpp"
#include "base/sandbox/sandbox.hpp"

namespace mlenv::sandbox {

struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};

inline FileId id_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }

struct FileIdHash {
  std::size_t operator()(const FileId& id) const noexcept {
    return static_cast<std::size_t>(id.inode * 0x9E3779B97F4A7C15U ^ id.device);
  }
};

/// What is known of one file. It is held open, or its inode number would be given to another file
/// as soon as it is deleted.
struct FileRecord {
  Owner owner;
  std::string capability;  ///< empty: none
  Fd pin;
};

/// Files without a record are 0:0 and cost nothing; so only the few that differ are held open.
class Ownership {
 public:
  const FileRecord* find(FileId id) const {
    const auto found = records_.find(id);
    return found == records_.end() ? nullptr : &found->second;
  }
  /// `file` (O_PATH) is `id`; an id not given stays as it is. Takes any capability away, as
  /// chown(2) does.
  void change_owner(FileId id, Fd file, std::optional<std::uint32_t> uid,
                    std::optional<std::uint32_t> gid);
  void set_capability(FileId id, Fd file, std::string value);
  /// Whether there was one.
  bool remove_capability(FileId id);

  /// `initial` onto the tree below `root` (a folder's descriptor). Symbolic links are not followed.
  void load(int root, const Owners& initial);
  /// Fills both maps from the tree below `root`.
  void collect(int root, Owners& owners, FileCapabilities& capabilities) const;

 private:
  void keep(FileId id, FileRecord record);
  void collect_entry(const struct stat& status, const std::string& path, Owners& owners,
                     FileCapabilities& capabilities) const;
  std::unordered_map<FileId, FileRecord, FileIdHash> records_;
};

}  // namespace mlenv::sandbox
