#pragma once
// A tree of our own in which modes keep even us out: folders without r and x, files without r. A
// container's root reads them all the same, as does a process that reads past modes
// (base/sandbox/read_own.hpp); where an ordinary user may not do that, they are opened up first.
#include <sys/stat.h>
#include <map>
#include <string>

#include "base/files.hpp"

namespace mlenv {

/// Folders that are opened up stay so until the destructor gives them their modes back; so does
/// nothing when the process is killed, and the tree then differs from its layer.
class ShutFolders {
 public:
  explicit ShutFolders(fs::path root) : root_(std::move(root)) {}
  ShutFolders(const ShutFolders&) = delete;
  ShutFolders& operator=(const ShutFolders&) = delete;
  ~ShutFolders();

  /// lstat(2) of a path relative to the root, with the mode that it had before; false when there is
  /// nothing. Throws `permission` where it is not ours.
  bool status(const std::string& path, struct stat& status);
  /// Lets us list the folder and read its attributes; one that we may, and other things, are left
  /// alone.
  void open_up(const std::string& path);
  /// A file for reading. It has its own mode again when this returns.
  Fd open_file(const std::string& path);

 private:
  bool open_up_parents(const std::string& path);
  fs::path root_;
  std::map<std::string, mode_t> modes_;  ///< of folders that are open now
};

}  // namespace mlenv
