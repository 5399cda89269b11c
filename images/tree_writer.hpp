#pragma once
// Writes a tree of files beneath one folder, as an unpacked layer lies in the store. Few system
// calls a file: parents stay open, modes that the umask gives anyway are not set again.
//
// Every path is resolved beneath the root (openat2, RESOLVE_BENEATH): links inside the tree are
// followed for parents, never out of it (`bad-layer`). A later entry replaces an earlier one at the
// same path, as tar does; a folder on a folder only changes its attributes.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/files.hpp"
#include "base/tar.hpp"

namespace mlenv {

struct Attributes {
  std::uint32_t mode = 0644;  ///< permission bits, setuid, setgid, sticky
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  std::int64_t mtime = 0;
};

/// One thread at a time. As a Sink it takes the content of the file that was begun last. Owners and
/// devices are set when the process is root (and silently left where a user namespace forbids it),
/// else all belongs to the caller.
class TreeWriter final : public Sink {
 public:
  /// `root` exists and is empty, or was written by another TreeWriter.
  explicit TreeWriter(const fs::path& root);
  TreeWriter(const TreeWriter&) = delete;
  TreeWriter& operator=(const TreeWriter&) = delete;
  ~TreeWriter() override;

  /// Paths as in TarEntry: relative, no leading or trailing `/`, no `..`; `.` is the root itself.
  /// Parents that are missing are made with mode 0755 and time 0.
  void add_folder(std::string_view path, const Attributes& attributes);
  /// Then `write` any number of times, `size_bytes` in all, then `end_file`.
  void begin_file(std::string_view path, const Attributes& attributes, std::uint64_t size_bytes);
  void write(ByteView data) override;
  void end_file();
  void add_file(std::string_view path, const Attributes& attributes, ByteView content);
  /// The link's mode is not used: Linux has none.
  void add_symlink(std::string_view path, std::string_view target, const Attributes& attributes);
  /// `target` is a path as above, already written.
  void add_hardlink(std::string_view path, std::string_view target);
  /// Character device, block device or FIFO. Devices are left out when they may not be made.
  void add_node(const TarEntry& entry);
  /// Best effort (a user may set few of them); overlayfs's own attributes are left out. After the
  /// entry itself; for files and folders.
  void set_xattr(std::string_view path, const std::string& name, const std::string& value);

  /// Overlayfs marks: `path` hides what lower layers have there (a character device 0/0, which
  /// ordinary users may make since Linux 5.8), or the folder hides all below it.
  void add_whiteout(std::string_view path);
  void mark_opaque(std::string_view folder);

  /// Any entry of a layer, its data from `data`: a switch over the calls above, whiteouts too
  /// (image-spec layer.md, "Whiteouts").
  void add(const TarEntry& entry, Source& data);

  /// Sets the folders' modes, owners and times, which writing into them would change. Call once,
  /// last. Several writers on one root: all write, then each finishes.
  void finish();

 private:
  struct OpenFolder {
    std::string path;
    Fd fd;
  };
  struct Parent {
    int fd;
    std::string name;
  };
  Parent parent_of(std::string_view path);
  int open_folder(std::string_view path);
  Fd find_folder(std::string_view path) const;
  Fd make_folder(std::string_view path);
  template <typename Make>
  void make_entry(std::string_view path, Make&& make);
  void forget_folder(std::string_view path);
  void meet_folder(std::string_view path, const Parent& at, const Attributes& attributes);
  static bool make_directory(const Parent& at, std::uint32_t mode);
  void set_owner(int folder_fd, const char* name, const Attributes& attributes);
  void settle_folder(const std::string& path, const Attributes& attributes);
  std::string writing() const;

  fs::path root_;
  Fd root_fd_;
  std::vector<OpenFolder> open_;  ///< from the root's child down to the folder used last
  std::map<std::string, Attributes> folders_;
  Fd file_;
  std::string file_path_;
  Attributes file_attributes_;
  Bytes buffer_;
  std::uint32_t umask_;  ///< bits that creating a file or folder does not give
  uid_t uid_;            ///< who new entries belong to
  gid_t gid_;
  bool owners_;            ///< owners can be set
  bool inherits_ = false;  ///< the root is setgid: new entries take its group
};

}  // namespace mlenv
