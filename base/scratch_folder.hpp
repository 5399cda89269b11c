#pragma once
// A folder below $TMPDIR for what other programs read and write, as uv and git: requirements with
// logins in them, perhaps.
#include "base/files.hpp"
#include "base/handle.hpp"

namespace mlenv {

/// Gone with the object. One whose process was ended, by Ctrl-C or kill -9, goes when the same user
/// next makes one: it is locked as long as its process lives.
class ScratchFolder {
 public:
  ScratchFolder() : ScratchFolder(temporary_root()) {}
  /// Below another folder that is there.
  explicit ScratchFolder(const fs::path& root) : ScratchFolder(make(root)) {}
  const fs::path& path() const { return folder_.path(); }

 private:
  struct Parts {
    Fd lock;
    TemporaryFolder folder;
  };
  static Parts make(const fs::path& root);
  explicit ScratchFolder(Parts parts)
      : lock_(std::move(parts.lock)), folder_(std::move(parts.folder)) {}

  Fd lock_;  ///< empty where the file system knows no locks: nobody takes what lies there for left
  TemporaryFolder folder_;
};

}  // namespace mlenv
