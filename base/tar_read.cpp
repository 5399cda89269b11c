#include <archive.h>
#include <archive_entry.h>
#include <algorithm>
#include <cstdint>

#include "base/archive_source.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/sparse_data.hpp"
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

std::string required_text(const char* text, const char* what) {
  if (text == nullptr) throw bad_tar(fmt::format("an entry has no {}", what));
  return text;
}

TarEntry convert(archive_entry* entry) {
  const PlainNames plain;
  TarEntry result;
  result.path = clean_path(required_text(archive_entry_pathname(entry), "name"));
  result.type = type_of(entry, result.path);
  if (result.type == TarEntry::Type::hardlink) {
    result.link = clean_path(archive_entry_hardlink(entry));
  } else if (result.type == TarEntry::Type::symlink) {
    result.link = required_text(archive_entry_symlink(entry), "link target");
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

/// The content of an entry of `size` bytes, whatever of it the archive holds: libarchive ends with
/// the last piece, and says nothing of a hole behind it.
class TarData final : public SparseData {
 public:
  /// `stored`: so many bytes of it are no holes.
  TarData(ArchiveReader& reader, const TarEntry& entry, std::uint64_t stored)
      : reader_(reader), entry_(entry), has_holes_(stored < entry.size_bytes), missing_(stored) {}

  bool has_holes() const override { return has_holes_; }

  std::size_t read(ByteSpan out) override {
    if (out.empty() || !find_piece()) return 0;
    const bool is_hole = at_ < begin_;
    const std::uint64_t end = is_hole ? begin_ : begin_ + piece_.size();
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), end - at_));
    if (is_hole) {
      std::fill_n(out.begin(), count, std::byte{0});
    } else {
      std::copy_n(piece_.begin() + static_cast<std::ptrdiff_t>(at_ - begin_), count, out.begin());
    }
    at_ += count;
    return count;
  }

  std::uint64_t skip_hole() override {
    if (!find_piece() || at_ >= begin_) return 0;
    const std::uint64_t length = begin_ - at_;
    at_ = begin_;
    return length;
  }

 private:
  /// False at the end; else the next byte lies in the piece, or in a hole before it.
  bool find_piece() {
    while (!ended_ && at_ == begin_ + piece_.size()) next_piece();
    return at_ < begin_ + piece_.size();
  }

  void next_piece() {
    const void* data = nullptr;
    std::size_t size = 0;
    std::int64_t offset = 0;
    const int result = archive_read_data_block(reader_.get(), &data, &size, &offset);
    if (result == ARCHIVE_EOF) {
      ended_ = true;
      if (missing_ > 0) {
        throw bad_tar(fmt::format("`{}` ends {} bytes early", entry_.path, missing_));
      }
      begin_ = entry_.size_bytes;
      piece_ = {};
      return;
    }
    if (result < ARCHIVE_WARN) reader_.fail();
    const bool fits = offset >= 0 && static_cast<std::uint64_t>(offset) >= at_ &&
                      static_cast<std::uint64_t>(offset) <= entry_.size_bytes &&
                      size <= entry_.size_bytes - static_cast<std::uint64_t>(offset) &&
                      size <= missing_;
    if (!fits) {
      throw bad_tar(fmt::format("the pieces of the sparse file `{}` do not fit into its {} bytes",
                                entry_.path, entry_.size_bytes));
    }
    begin_ = static_cast<std::uint64_t>(offset);
    piece_ = ByteView{static_cast<const std::byte*>(data), size};
    missing_ -= size;
  }

  ArchiveReader& reader_;
  const TarEntry& entry_;
  bool has_holes_;
  std::uint64_t missing_;    ///< stored bytes that are to come
  std::uint64_t at_ = 0;     ///< the next byte
  std::uint64_t begin_ = 0;  ///< of the piece
  ByteView piece_;
  bool ended_ = false;
};

/// Of a file; all of it where the archive knows of no holes.
std::uint64_t stored_bytes(archive_entry* entry, std::uint64_t size) {
  if (archive_entry_sparse_count(entry) == 0) return size;
  (void)archive_entry_sparse_reset(entry);
  std::uint64_t sum = 0;
  std::int64_t offset = 0;
  std::int64_t length = 0;
  while (archive_entry_sparse_next(entry, &offset, &length) == ARCHIVE_OK) {
    sum += static_cast<std::uint64_t>(length);
  }
  return sum;
}

/// A header of a few bytes can promise any size, and most readers read the zeros.
void check_size(const TarEntry& entry, bool has_holes) {
  constexpr std::uint64_t kMost = std::uint64_t{2} << 40U;
  if (!has_holes || entry.size_bytes <= kMost) return;
  throw bad_tar(fmt::format("the sparse file `{}` has {} bytes, and at most {} are read",
                            entry.path, entry.size_bytes, kMost));
}

void read_entries(ArchiveReader& reader, const Take& take) {
  while (archive_entry* entry = reader.next()) {
    const TarEntry converted = convert(entry);
    if (converted.type == TarEntry::Type::file) {
      const std::uint64_t stored = stored_bytes(entry, converted.size_bytes);
      check_size(converted, stored < converted.size_bytes);
      TarData data{reader, converted, stored};
      take(converted, data);
    } else {
      ArchiveData data = reader.data();
      take(converted, data);
    }
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
      const std::string name = required_text(archive_entry_pathname(entry), "name");
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
