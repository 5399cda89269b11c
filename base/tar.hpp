#pragma once
// Tar: the header bytes that layers are made of (frozen with the layer format; POSIX.1-2001 ustar,
// pax records only where ustar cannot say it), and reading of anybody's archives through
// libarchive.
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/files.hpp"

namespace mlenv {

struct TarEntry {
  enum class Type { file, folder, symlink, hardlink, char_device, block_device, fifo };
  Type type = Type::file;
  std::string path;           ///< relative, no leading `/` or `./`, no trailing `/`
  std::string link;           ///< target of a symlink (verbatim) or hardlink (a path as above)
  std::uint32_t mode = 0644;  ///< permission bits, setuid, setgid, sticky
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t mtime = 0;
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::map<std::string, std::string> xattrs;  ///< raw values, written as SCHILY.xattr.*
};

inline constexpr std::size_t kTarBlock = 512;

/// The header of `entry`, pax header in front where needed: names over 100 bytes that do not split
/// into ustar's prefix, links over 100, sizes from 8 GiB, ids from 2^21,
/// times below 0 or from 2^33, xattrs. Records are sorted by key; names are bytes as they are.
/// Throws `bad-tar` for a name that is empty or holds NUL, and for device numbers from 2^21.
/// Multiple of 512 bytes. Folders get a trailing `/`; user and group names stay empty.
Bytes tar_header(const TarEntry& entry);
/// Zero bytes needed after `size_bytes` of data.
inline std::size_t tar_padding(std::uint64_t size_bytes) {
  return static_cast<std::size_t>((kTarBlock - size_bytes % kTarBlock) % kTarBlock);
}
/// Two zero blocks.
ByteView tar_end();

/// Reads a tar stream (any dialect; already decompressed), calling `take` for each entry in order.
/// `data` yields the file's content and need not be read to its end. Paths are cleaned (`./a` →
/// `a`, the root itself → `.`); a path or hardlink that is absolute is taken relative to the root;
/// one that holds `..` throws `bad-tar`, as do malformed archives and unknown entry types. Names
/// are the bytes in the archive, whatever the locale. Stops at the archive's end: what follows in
/// `in` is not read.
void read_tar(Source& in, const std::function<void(const TarEntry&, Source& data)>& take);

/// Members of a Debian package (ar with control.tar.* and data.tar.*, any compression, deb(5)):
/// opens `path` and streams the decompressed control and data archives. Throws `bad-deb`, and
/// `bad-tar` for unsafe names.
void read_deb(const fs::path& path, const std::function<void(const TarEntry&, Source&)>& control,
              const std::function<void(const TarEntry&, Source&)>& data);

}  // namespace mlenv
