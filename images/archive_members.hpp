#pragma once
// The files that an image in files is made of. For images/archive_*.cpp only.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/files.hpp"

namespace mlenv {

class ArchiveMembers {
 public:
  virtual ~ArchiveMembers() = default;
  /// Content of a small file (at most 4 MiB); nullopt when there is none such.
  virtual std::optional<std::string> text(const std::string& name) = 0;
  virtual bool has(const std::string& name) const = 0;
  /// Calls `take` for each of these files that there is, in any order, each once.
  virtual void read(const std::set<std::string>& names,
                    const std::function<void(const std::string& name, Source& data)>& take) = 0;
};

/// Throws `absent`; `bad-image` for a folder in the place of a file and the reverse, and for a tar
/// that is compressed.
std::unique_ptr<ArchiveMembers> open_folder_members(const fs::path& folder);
/// `shown`: what messages call it; by default its path.
std::unique_ptr<ArchiveMembers> open_tar_members(const fs::path& file,
                                                 const std::string& shown = {});
/// gzip, xz, zstd or bzip2, by its first bytes.
bool is_compressed(const fs::path& file);

}  // namespace mlenv
