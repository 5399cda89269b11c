#pragma once
// Writes an ext4 file system into a file, entry by entry, without root: by libext2fs, which is part
// of the programs that every distribution makes its file systems with. The same calls give the same
// bytes: no time, no chance. What is not written stays a hole of the file.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/tar.hpp"

namespace mlenv {

class Ext4Writer {
 public:
  using Node = std::uint32_t;
  static constexpr Node kRoot = 2;

  /// Makes the file. `id` names the file system. Throws `disk-write`.
  Ext4Writer(const fs::path& path, std::uint64_t size_bytes, const Digest& id);
  Ext4Writer(const Ext4Writer&) = delete;
  Ext4Writer& operator=(const Ext4Writer&) = delete;
  ~Ext4Writer();

  // Each throws `disk-full` where the file system has no room, else `disk-write`. `entry` gives
  // owner, mode, time and extended attributes; its path is not used.
  Node add_folder(Node parent, const std::string& name, const TarEntry& entry);
  Node add_file(Node parent, const std::string& name, const TarEntry& entry, Source& data);
  Node add_symlink(Node parent, const std::string& name, const TarEntry& entry);
  /// Device or FIFO.
  Node add_special(Node parent, const std::string& name, const TarEntry& entry);
  void add_hardlink(Node parent, const std::string& name, Node target);
  /// Of a node that is there.
  void set_attributes(Node node, const TarEntry& entry);
  /// A name of what is no folder; the node goes with its last one.
  void remove(Node parent, const std::string& name, Node node);

  /// Writes what is still in memory. Call once, last.
  void finish();

 private:
  struct State;
  void link(Node parent, const std::string& name, Node node, int type);
  void write_content(Node node, std::uint64_t size_bytes, Source& data);
  std::unique_ptr<State> state_;
};

/// libext2fs's way to a file (io_manager).
void* ext4_file_access();

}  // namespace mlenv
