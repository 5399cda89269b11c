// TreeWriter: entries as layers hold them, whiteouts and extended attributes among them.
#include <sys/xattr.h>
#include <cerrno>

#include "base/error.hpp"
#include "images/tree_paths.hpp"
#include "images/tree_writer.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{256} << 10U;

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
  if (::fsetxattr(fd.get(), name.c_str(), value.data(), value.size(), 0) != 0 &&
      (errno == ENOSPC || errno == EDQUOT)) {
    throw os_error(errno, "cannot set the attribute `{}` of `{}`", name, path);
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
      begin_file(entry.path, attributes, entry.size_bytes);
      buffer_.resize(kBufferBytes);
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
