#pragma once
// Waiting until something is written below a folder.
#include <vector>

#include "base/files.hpp"

namespace mlenv::cli {

/// Something happens in one of its folders; a wait without it ends soon all the same, since not
/// every file system tells (inotify(7)).
class FolderEvents {
 public:
  FolderEvents();
  explicit FolderEvents(const fs::path& folder) : FolderEvents() { add(folder); }
  void add(const fs::path& folder) const;
  void wait() const;

 private:
  Fd fd_;
};

}  // namespace mlenv::cli
