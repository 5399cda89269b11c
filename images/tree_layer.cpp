// TreeWriter: entries as layers hold them, whiteouts and extended attributes among them.
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <cerrno>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/sparse_data.hpp"
#include "images/tree_paths.hpp"
#include "images/tree_writer.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kFileBufferBytes = std::size_t{256} << 10U;

/// Setting an attribute fails with the same error on a full disk and on a full file.
bool is_disk_full(int fd) {
  struct statvfs status {};
  return ::fstatvfs(fd, &status) == 0 && (status.f_bavail == 0 || status.f_favail == 0);
}

/// Holes stay holes. No room is taken for them.
void write_sparse(int file, SparseData& data, Bytes& buffer) {
  off_t at = 0;
  while (true) {
    at += static_cast<off_t>(data.skip_hole());
    const std::size_t count = data.read(buffer);
    if (count == 0) break;
    if (::lseek(file, at, SEEK_SET) < 0) throw os_error(errno, "cannot write a sparse file");
    write_all(file, ByteView{buffer}.first(count));
    at += static_cast<off_t>(count);
  }
  if (::ftruncate(file, at) != 0) {
    throw os_error(errno, "cannot make a sparse file of {} bytes", at);
  }
}

}  // namespace

void TreeWriter::set_xattr(std::string_view path, const std::string& name,
                           const std::string& value) {
  if (name.starts_with("trusted.overlay.") || name.starts_with("user.overlay.")) return;
  check_layer_path(path);
  Fd fd;
  if (path == ".") {
    fd = Fd{::openat(root_fd_.get(), ".", kFolderFlags)};
  } else {
    const Parent at = parent_of(path);
    fd = Fd{::openat(at.fd, at.name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  }
  if (!fd) return;
  if (::fsetxattr(fd.get(), name.c_str(), value.data(), value.size(), 0) == 0) return;
  if (errno == EDQUOT || (errno == ENOSPC && is_disk_full(fd.get()))) {
    throw os_error(errno, "cannot set the attribute `{}` of `{}`", name, path);
  }
  // ENOSPC of a disk that has room: one file takes no more (xattr(7): in ext4 those of a file fit
  // into one block).
  if (errno == ENOSPC) {
    throw failure("bad-layer", "`{}` has more extended attributes than the store's disk takes",
                  path)
        .because(fmt::format("`{}` of {} bytes does not fit any more: {}", printable(name),
                             value.size(), errno_text(errno)))
        .hint("put the store on a file system that takes more, as XFS and btrfs do");
  }
}

void TreeWriter::mark_opaque(std::string_view folder) {
  const int fd = folder == "." ? root_fd_.get() : open_folder(folder);
  bool marked = false;
  for (const char* mark : kOpaqueMarks) marked |= ::fsetxattr(fd, mark, "y", 1, 0) == 0;
  if (!marked) {
    throw os_error(errno, "cannot mark `{}` as hiding the layers below", folder)
        .hint("put the store on a file system with extended attributes");
  }
}

void TreeWriter::add(const TarEntry& entry, Source& data) {
  const Attributes attributes{entry.mode, entry.uid, entry.gid, entry.mtime};
  const std::size_t slash = entry.path.rfind('/');
  const std::string name = slash == std::string::npos ? entry.path : entry.path.substr(slash + 1);
  if (name.starts_with(kWhiteoutPrefix)) {
    const std::string folder = slash == std::string::npos ? "." : entry.path.substr(0, slash);
    if (name == kOpaqueName) return mark_opaque(folder);
    if (name.starts_with(kAufsPrefix)) return;
    return add_whiteout(folder == "." ? name.substr(kWhiteoutPrefix.size())
                                      : folder + "/" + name.substr(kWhiteoutPrefix.size()));
  }
  switch (entry.type) {
    case TarEntry::Type::folder:
      add_folder(entry.path, attributes);
      break;
    case TarEntry::Type::file:
      buffer_.resize(kFileBufferBytes);
      if (auto* const sparse = dynamic_cast<SparseData*>(&data); sparse && sparse->has_holes()) {
        begin_file(entry.path, attributes, 0);
        while_doing(writing(), [&] { write_sparse(file_.get(), *sparse, buffer_); });
        end_file();
        break;
      }
      begin_file(entry.path, attributes, entry.size_bytes);
      while (const std::size_t count = data.read(buffer_)) write(ByteView{buffer_}.first(count));
      end_file();
      break;
    case TarEntry::Type::symlink:
      add_symlink(entry.path, entry.link, attributes);
      break;
    case TarEntry::Type::hardlink:
      add_hardlink(entry.path, entry.link);
      break;
    default:
      add_node(entry);
  }
  const bool holds_data =
      entry.type == TarEntry::Type::file || entry.type == TarEntry::Type::folder;
  if (!holds_data) return;  // opening a device may do something
  for (const auto& [key, value] : entry.xattrs) set_xattr(entry.path, key, value);
}

}  // namespace mlenv
