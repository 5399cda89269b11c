#include <archive.h>
#include <archive_entry.h>

#include "base/archive_source.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/tar.hpp"

namespace mlenv {
namespace {

using Take = std::function<void(const TarEntry&, Source&)>;

Error bad_tar(std::string_view cause) {
  return failure("bad-tar", "a tar archive is damaged or unsafe").because(printable(cause));
}

/// `./a//b/` → `a/b`; the root → `.`.
std::string clean_path(std::string_view raw) {
  std::string path;
  for (std::string_view rest = raw; !rest.empty();) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") throw bad_tar(fmt::format("`{}` leads out of the archive", raw));
    if (!path.empty()) path += '/';
    path += part;
  }
  if (raw.empty()) throw bad_tar("an entry has no name");
  return path.empty() ? "." : path;
}

TarEntry::Type type_of(archive_entry* entry, std::string_view path) {
  if (archive_entry_hardlink(entry) != nullptr) return TarEntry::Type::hardlink;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return TarEntry::Type::file;
    case AE_IFDIR:
      return TarEntry::Type::folder;
    case AE_IFLNK:
      return TarEntry::Type::symlink;
    case AE_IFCHR:
      return TarEntry::Type::char_device;
    case AE_IFBLK:
      return TarEntry::Type::block_device;
    case AE_IFIFO:
      return TarEntry::Type::fifo;
    default:
      throw bad_tar(fmt::format("`{}` is of an unknown type", path));
  }
}

void read_xattrs(archive_entry* entry, TarEntry& result) {
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  (void)archive_entry_xattr_reset(entry);
  while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
    result.xattrs[name] = std::string(static_cast<const char*>(value), size);
  }
}

std::string text_of(const char* text, const char* what) {
  if (text == nullptr) throw bad_tar(fmt::format("an entry has no {}", what));
  return text;
}

TarEntry convert(archive_entry* entry) {
  const PlainNames plain;
  TarEntry result;
  result.path = clean_path(text_of(archive_entry_pathname(entry), "name"));
  result.type = type_of(entry, result.path);
  if (result.type == TarEntry::Type::hardlink) {
    result.link = clean_path(archive_entry_hardlink(entry));
  } else if (result.type == TarEntry::Type::symlink) {
    result.link = text_of(archive_entry_symlink(entry), "link target");
  }
  const auto uid = archive_entry_uid(entry);
  const auto gid = archive_entry_gid(entry);
  const auto size = archive_entry_size(entry);
  if (uid < 0 || gid < 0 || size < 0) {
    throw bad_tar(fmt::format("`{}` has a negative owner or size", result.path));
  }
  result.mode = static_cast<std::uint32_t>(archive_entry_perm(entry)) & 07777U;
  result.uid = static_cast<std::uint64_t>(uid);
  result.gid = static_cast<std::uint64_t>(gid);
  if (result.type == TarEntry::Type::file) result.size_bytes = static_cast<std::uint64_t>(size);
  result.mtime = archive_entry_mtime(entry);
  if (result.type == TarEntry::Type::char_device || result.type == TarEntry::Type::block_device) {
    result.device_major = static_cast<std::uint32_t>(archive_entry_rdevmajor(entry));
    result.device_minor = static_cast<std::uint32_t>(archive_entry_rdevminor(entry));
  }
  read_xattrs(entry, result);
  return result;
}

void read_entries(ArchiveReader& reader, const Take& take) {
  while (archive_entry* entry = reader.next()) {
    ArchiveData data = reader.data();
    take(convert(entry), data);
  }
}

enum class Part { other, control, data };

Part part_of(std::string_view name) {
  if (name.starts_with("control.tar")) return Part::control;
  if (name.starts_with("data.tar")) return Part::data;
  return Part::other;
}

/// The tar inside an ar member, whose name tells its compression (deb(5)).
void read_part(Source& in, std::string_view name, const Take& take) {
  const std::string suffix(name.substr(name.find(".tar") + 4));
  ArchiveReader reader{in, "bad-deb", fmt::format("`{}` in a Debian package is damaged", name)};
  if (suffix == ".xz") {
    archive_read_append_filter(reader.get(), ARCHIVE_FILTER_XZ);
  } else if (suffix == ".zst") {
    archive_read_append_filter(reader.get(), ARCHIVE_FILTER_ZSTD);
  } else if (suffix == ".gz") {
    archive_read_append_filter(reader.get(), ARCHIVE_FILTER_GZIP);
  } else if (suffix == ".bz2") {
    archive_read_append_filter(reader.get(), ARCHIVE_FILTER_BZIP2);
  } else if (suffix == ".lzma") {
    archive_read_append_filter(reader.get(), ARCHIVE_FILTER_LZMA);
  } else if (!suffix.empty()) {
    throw failure("bad-deb", "`{}` in a Debian package is compressed in an unknown way", name);
  }
  archive_read_support_format_tar(reader.get());
  archive_read_support_format_empty(reader.get());
  reader.open();
  read_entries(reader, take);
}

void check_version(Source& member) {
  const std::string version = read_all(member, 64);
  if (!version.starts_with("2.")) {
    throw failure("bad-deb", "a Debian package is of an unknown format")
        .because("needs 2.x, found " + version.substr(0, version.find('\n')));
  }
}

}  // namespace

void read_tar(Source& in, const Take& take) {
  ArchiveReader reader{in, "bad-tar", "a tar archive is damaged or unsafe"};
  archive_read_support_format_tar(reader.get());
  reader.open();
  read_entries(reader, take);
}

void read_deb(const fs::path& path, const Take& control, const Take& data) {
  while_doing("reading `" + path.string() + "`", [&] {
    const Fd fd = open_file(path);
    FdSource source{fd.get()};
    ArchiveReader reader{source, "bad-deb", "a Debian package is damaged"};
    archive_read_support_format_ar(reader.get());
    reader.open();
    bool versioned = false;
    bool controlled = false;
    while (archive_entry* entry = reader.next()) {
      const std::string name = text_of(archive_entry_pathname(entry), "name");
      ArchiveData member = reader.data();
      const Part part = part_of(name);
      if (name == "debian-binary") {
        check_version(member);
        versioned = true;
      } else if (part == Part::control && versioned && !controlled) {
        read_part(member, name, control);
        controlled = true;
      } else if (part == Part::data && controlled) {
        read_part(member, name, data);
        return;
      }
    }
    throw failure("bad-deb", "a Debian package is damaged")
        .because("it lacks one of debian-binary, control.tar and data.tar, in this order");
  });
}

}  // namespace mlenv
