#include "images/tree_check.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.hpp"
#include "base/sparse_data.hpp"
#include "base/tree_walk.hpp"
#include "images/tree_paths.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kCompareBytes = std::size_t{256} << 10U;

/// Root whose user namespace has all ids: only then did chown do what the layer says.
bool owns_all_ids() {
  if (::geteuid() != 0) return false;
  const auto map = read_file_if_exists("/proc/self/uid_map");
  return map && map->find("4294967295") != std::string::npos;
}

std::size_t read_full(Source& source, ByteSpan out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const std::size_t count = source.read(out.subspan(filled));
    if (count == 0) break;
    filled += count;
  }
  return filled;
}

/// Whether the file's next `length` bytes are zeros; passes over them.
bool has_zeros(int fd, std::uint64_t length, Bytes& buffer) {
  const off_t begin = ::lseek(fd, 0, SEEK_CUR);
  const off_t end = begin + static_cast<off_t>(length);
  for (off_t at = begin; at < end;) {
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 || data >= end) break;  // the rest is a hole, here too
    at = data;
    const auto most = std::min<std::uint64_t>(buffer.size(), static_cast<std::uint64_t>(end - at));
    const ssize_t count = ::pread(fd, buffer.data(), static_cast<std::size_t>(most), at);
    if (count <= 0) return false;
    if (std::any_of(buffer.begin(), buffer.begin() + count,
                    [](std::byte byte) { return byte != std::byte{0}; })) {
      return false;
    }
    at += count;
  }
  return ::lseek(fd, end, SEEK_SET) == end;
}

bool is_same_content(int fd, Source& data) {
  FdSource file{fd};
  Bytes ours(kCompareBytes);
  Bytes theirs(kCompareBytes);
  auto* const sparse = dynamic_cast<SparseData*>(&data);
  while (true) {
    const std::uint64_t hole = sparse != nullptr ? sparse->skip_hole() : 0;
    if (hole > 0 && !has_zeros(fd, hole, ours)) return false;
    if (hole > 0) continue;
    const std::size_t count = read_full(file, ours);
    const std::size_t wanted = read_full(data, theirs);
    if (count != wanted ||
        !std::equal(ours.begin(), ours.begin() + static_cast<std::ptrdiff_t>(count),
                    theirs.begin())) {
      return false;
    }
    if (count == 0) return true;
  }
}

bool is_device(TarEntry::Type type) {
  return type == TarEntry::Type::char_device || type == TarEntry::Type::block_device;
}

}  // namespace

mode_t type_bits(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::folder:
      return S_IFDIR;
    case TarEntry::Type::symlink:
      return S_IFLNK;
    case TarEntry::Type::char_device:
      return S_IFCHR;
    case TarEntry::Type::block_device:
      return S_IFBLK;
    case TarEntry::Type::fifo:
      return S_IFIFO;
    default:
      return S_IFREG;
  }
}

TreeCheck::TreeCheck(fs::path root)
    : root_(std::move(root)), owners_(owns_all_ids()), files_(root_) {}

void TreeCheck::expect(const std::string& path, std::string flaw) {
  for (std::size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    expected_.try_emplace(path.substr(0, at));
  }
  expected_.insert_or_assign(path, Expected{std::move(flaw), false});
}

void TreeCheck::take_whiteout(const std::string& folder, const std::string& name) {
  if (name == kOpaqueName) {
    files_.open_up(folder);
    if (!has_opaque_mark(root_ / folder)) expect(folder, "does not hide what lies below it");
    return;
  }
  if (name.starts_with(kAufsPrefix)) return;
  const std::string path =
      (folder == "." ? "" : folder + "/") + name.substr(kWhiteoutPrefix.size());
  if (expected_.contains(path)) return;
  struct stat status {};
  const bool found = files_.status(path, status);
  const bool right = found && S_ISCHR(status.st_mode) && status.st_rdev == 0;
  expect(path, right ? "" : "is not a whiteout");
}

void TreeCheck::take(const TarEntry& entry, Source& data) {
  const std::size_t slash = entry.path.rfind('/');
  const std::string name = slash == std::string::npos ? entry.path : entry.path.substr(slash + 1);
  if (name.starts_with(kWhiteoutPrefix)) {
    return take_whiteout(slash == std::string::npos ? "." : entry.path.substr(0, slash), name);
  }
  if (entry.type != TarEntry::Type::folder) {
    // What was below a folder that this entry replaces.
    const std::string below = entry.path + "/";
    auto old = expected_.lower_bound(below);
    while (old != expected_.end() && old->first.starts_with(below)) old = expected_.erase(old);
  }
  struct stat status {};
  // Devices are left out where they may not be made.
  if (is_device(entry.type) && !files_.status(entry.path, status)) return;
  expect(entry.path, compare(entry, data));
}

std::string TreeCheck::compare_attributes(const TarEntry& entry, const struct stat& status) const {
  // A user's chmod may drop setuid and setgid silently.
  const std::uint32_t bits = ::geteuid() == 0 ? 07777 : 0777;
  if ((status.st_mode & bits) != (entry.mode & bits)) {
    return fmt::format("has mode {:04o} instead of {:04o}", status.st_mode & bits,
                       entry.mode & bits);
  }
  if (owners_ && (status.st_uid != entry.uid || status.st_gid != entry.gid)) {
    return fmt::format("belongs to {}:{} instead of {}:{}", status.st_uid, status.st_gid, entry.uid,
                       entry.gid);
  }
  return {};
}

std::string TreeCheck::compare(const TarEntry& entry, Source& data) {
  struct stat status {};
  if (!files_.status(entry.path, status)) return "is missing";
  if (entry.type == TarEntry::Type::hardlink) {
    struct stat target {};
    const bool linked = files_.status(entry.link, target) && target.st_ino == status.st_ino &&
                        target.st_dev == status.st_dev;
    return linked ? "" : "is not the same file as `" + entry.link + "`";
  }
  if ((status.st_mode & S_IFMT) != type_bits(entry.type)) return "is of another type";
  if (entry.type == TarEntry::Type::symlink) {
    std::error_code error;
    return fs::read_symlink(root_ / entry.path, error) == entry.link ? ""
                                                                     : "links to something else";
  }
  if (is_device(entry.type) &&
      status.st_rdev != ::makedev(entry.device_major, entry.device_minor)) {
    return "is another device";
  }
  if (entry.type == TarEntry::Type::folder) files_.open_up(entry.path);
  std::string flaw = compare_attributes(entry, status);
  if (!flaw.empty() || entry.type != TarEntry::Type::file) return flaw;
  if (static_cast<std::uint64_t>(status.st_size) != entry.size_bytes) {
    return fmt::format("has {} bytes instead of {}", status.st_size, entry.size_bytes);
  }
  const Fd fd = files_.open_file(entry.path);
  return is_same_content(fd.get(), data) ? "" : "has other content";
}

std::optional<std::string> TreeCheck::finish() {
  std::optional<std::string> extra;
  TreeWalk walk;
  walk.visit = [&](const TreeEntry& entry) {
    const auto wanted = expected_.find(entry.path);
    if (wanted != expected_.end()) {
      wanted->second.is_there = true;
      return true;
    }
    if (!extra || entry.path < *extra) extra = entry.path;
    return false;
  };
  walk.unreadable = [&](std::string_view path, int error) {
    if (error != EACCES) {
      throw os_error(error, "cannot read `{}`", short_path(root_, path));
    }
  };
  walk_tree(root_, walk);
  for (const auto& [path, wanted] : expected_) {
    if (!wanted.flaw.empty()) return "`" + path + "` " + wanted.flaw;
    if (path != "." && !wanted.is_there) return "`" + path + "` is missing";
  }
  if (extra) return "`" + short_path({}, *extra) + "` is not in the layer";
  return std::nullopt;
}

}  // namespace mlenv
