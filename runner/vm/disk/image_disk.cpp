#include "runner/vm/disk/image_disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "base/disk_use.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/own_entries.hpp"
#include "images/unpack_stream.hpp"
#include "runner/vm/disk/ext4_writer.hpp"
#include "runner/vm/disk/layer_merge.hpp"

namespace mlenv {
namespace {

using Node = Ext4Writer::Node;
using MergeKind = LayerMerge::Kind;

constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";

struct EntryPlace {
  std::string folder;  ///< `.` is the root
  std::string name;
};
EntryPlace entry_place(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

std::string joined(const std::string& folder, std::string_view name) {
  return folder == "." ? std::string(name) : folder + "/" + std::string(name);
}

class DiskMaker {
 public:
  explicit DiskMaker(Ext4Writer& disk) : disk_(disk) { merge_.add(".", MergeKind::folder, true); }

  void add_layer(const Store& store, const Layer& layer,
                 const std::function<void(std::uint64_t)>& advance) {
    merge_.begin_layer();
    files_.clear();
    orphans_.clear();
    names_.clear();
    read_layer(store, layer, advance,
               [&](const TarEntry& entry, Source& data) { take(entry, data); });
    if (orphans_.empty()) return;
    // Names of files whose own names upper layers hide: their content has passed by.
    read_layer(
        store, layer, [](std::uint64_t) {},
        [&](const TarEntry& entry, Source& data) { adopt(entry, data); });
    if (orphans_.empty()) return;
    throw failure("bad-layer", "a layer has a hard link to `{}`, which is not in it",
                  orphans_.begin()->first);
  }

 private:
  void take(const TarEntry& entry, Source& data) {
    if (entry.path == ".") return take_root(entry);
    const EntryPlace place = entry_place(entry.path);
    if (place.name == kOpaque) return merge_.hide_below(place.folder);
    if (place.name.starts_with(kWhiteout)) {
      return merge_.hide(joined(place.folder, place.name.substr(kWhiteout.size())));
    }
    const MergeKind kind =
        entry.type == TarEntry::Type::folder ? MergeKind::folder : MergeKind::other;
    if (!merge_.shows(entry.path, kind)) {
      if (entry.type == TarEntry::Type::hardlink) names_[entry.path] = origin(entry.link);
      return;
    }
    if (kind == MergeKind::folder) return take_folder(entry, place);
    const Node parent = folder(place.folder);
    remove_earlier(entry.path, parent, place.name);
    forget_orphan(entry.path);
    if (entry.type == TarEntry::Type::hardlink) return take_hardlink(entry, parent, place.name);
    files_[entry.path] = make(entry, parent, place.name, data);
    merge_.add(entry.path, MergeKind::other);
  }

  Node make(const TarEntry& entry, Node parent, const std::string& name, Source& data) {
    if (entry.type == TarEntry::Type::file) return disk_.add_file(parent, name, entry, data);
    if (entry.type == TarEntry::Type::symlink) return disk_.add_symlink(parent, name, entry);
    return disk_.add_special(parent, name, entry);
  }

  void take_root(const TarEntry& entry) {
    const LayerMerge::Seen* const seen = merge_.find(".");
    if (!seen->implied && seen->layer != merge_.layer()) return;
    disk_.set_attributes(Ext4Writer::kRoot, entry);
    merge_.add(".", MergeKind::folder);
  }

  void take_folder(const TarEntry& entry, const EntryPlace& place) {
    const auto known = folders_.find(entry.path);
    if (known != folders_.end()) {
      disk_.set_attributes(known->second, entry);
    } else {
      const Node parent = folder(place.folder);
      remove_earlier(entry.path, parent, place.name);
      folders_[entry.path] = disk_.add_folder(parent, place.name, entry);
    }
    merge_.add(entry.path, MergeKind::folder);
  }

  void take_hardlink(const TarEntry& entry, Node parent, const std::string& name) {
    const std::string leads_to = origin(entry.link);
    const auto target = files_.find(leads_to);
    if (target == files_.end()) {
      orphans_[leads_to].push_back(entry.path);
      names_[entry.path] = leads_to;
    } else {
      disk_.add_hardlink(parent, name, target->second);
      files_[entry.path] = target->second;
    }
    merge_.add(entry.path, MergeKind::other);
  }

  void adopt(const TarEntry& entry, Source& data) {
    const auto found = orphans_.find(entry.path);
    const bool is_content =
        entry.type != TarEntry::Type::folder && entry.type != TarEntry::Type::hardlink;
    if (found == orphans_.end() || !is_content) return;
    std::optional<Node> node;
    for (const std::string& path : found->second) {
      const EntryPlace place = entry_place(path);
      const Node parent = folder(place.folder);
      if (node) {
        disk_.add_hardlink(parent, place.name, *node);
      } else {
        node = make(entry, parent, place.name, data);
      }
    }
    orphans_.erase(found);
  }

  /// A later entry of this layer takes its place.
  void forget_orphan(const std::string& path) {
    const auto found = names_.find(path);
    if (found == names_.end()) return;
    const auto same = orphans_.find(found->second);
    if (same != orphans_.end()) {
      std::erase(same->second, path);
      if (same->second.empty()) orphans_.erase(same);
    }
    names_.erase(found);
  }

  /// The name by which the layer has the content of `path`, which may be a hard link itself.
  std::string origin(const std::string& path) const {
    const auto found = names_.find(path);
    return found == names_.end() ? path : found->second;
  }

  /// As tar has it: of two entries of one layer at one place the later one.
  void remove_earlier(const std::string& path, Node parent, const std::string& name) {
    const auto file = files_.find(path);
    if (file == files_.end()) {
      if (folders_.contains(path)) {
        throw failure("bad-layer", "a layer has `{}` as a folder and as a file", path);
      }
      return;
    }
    disk_.remove(parent, name, file->second);
    files_.erase(file);
  }

  Node folder(const std::string& path) {
    if (path == ".") return Ext4Writer::kRoot;
    const auto known = folders_.find(path);
    if (known != folders_.end()) return known->second;
    if (files_.contains(path)) {
      throw failure("bad-layer", "a layer has files below `{}`, which is no folder", path);
    }
    const EntryPlace place = entry_place(path);
    const Node parent = folder(place.folder);
    TarEntry plain;
    plain.type = TarEntry::Type::folder;
    plain.mode = 0755;
    const Node node = disk_.add_folder(parent, place.name, plain);
    folders_[path] = node;
    merge_.add(path, MergeKind::folder, /*implied=*/true);
    return node;
  }

  Ext4Writer& disk_;
  LayerMerge merge_;
  std::map<std::string, Node, std::less<>> folders_;
  std::map<std::string, Node, std::less<>> files_;           ///< of this layer
  std::map<std::string, std::vector<std::string>> orphans_;  ///< by where they lead
  std::map<std::string, std::string> names_;  ///< of this layer's hard links that are no files yet
};

/// Holes cost nothing: more than enough for whatever the layers hold.
std::uint64_t first_size(const Image& image) {
  constexpr std::uint64_t kLeast = std::uint64_t{4} << 30U;
  constexpr std::uint64_t kTimes = 8;
  std::uint64_t sum = 0;
  for (const Layer& layer : image.layers) sum += layer.blob.size_bytes;
  return (sum * kTimes / kLeast + 1) * kLeast;
}

void write_sized(const Store& store, const Image& image, const fs::path& path,
                 std::uint64_t size_bytes, Progress& progress) {
  std::uint64_t total = 0;
  for (const Layer& layer : image.layers) total += layer.blob.size_bytes;
  Activity activity{progress, "writing the virtual machine's disk", total};
  Ext4Writer disk{path, size_bytes, image.digest()};
  DiskMaker maker{disk};
  for (std::size_t i = image.layers.size(); i-- > 0;) {
    maker.add_layer(store, image.layers[i], [&](std::uint64_t bytes) { activity.advance(bytes); });
  }
  disk.finish();
}

fs::path disks_folder(const Store& store) { return store.root() / "vm" / "disks"; }

std::string disk_name(const Digest& image) {
  return fmt::format("{}-{}.ext4", image.hex(), kDiskFormat);
}

/// By its first block, as the kernel's documentation of ext4 has it: it is of that image, and the
/// file is as long as it says. A link, a pipe or a device is none.
bool is_disk_of(const fs::path& path, const Digest& image) {
  constexpr std::size_t kBlocksAt = 1024 + 0x4;
  constexpr std::size_t kIdAt = 1024 + 0x68;
  constexpr std::size_t kIdBytes = 16;
  constexpr std::uint64_t kBlockBytes = 4096;
  const Fd fd{::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::uint32_t blocks = 0;
  std::array<unsigned char, kIdBytes> id{};
  if (::pread(fd.get(), &blocks, sizeof blocks, kBlocksAt) != sizeof blocks ||
      ::pread(fd.get(), id.data(), id.size(), kIdAt) != static_cast<ssize_t>(id.size())) {
    return false;
  }
  std::string hex;
  for (const unsigned char byte : id) hex += fmt::format("{:02x}", byte);
  return image.hex().starts_with(hex) &&
         static_cast<std::uint64_t>(status.st_size) == blocks * kBlockBytes;
}

}  // namespace

void write_image_disk(const Store& store, const Image& image, const fs::path& path,
                      Progress& progress) {
  constexpr int kTries = 4;
  std::uint64_t size = first_size(image);
  for (int tries = 1;; ++tries, size *= 4) {
    try {
      return write_sized(store, image, path, size, progress);
    } catch (const Error& error) {
      if (error.code() != "disk-full" || tries == kTries) throw;
      log::debug("the image does not fit into a disk of {} bytes", size);
    }
  }
}

/// Of any format: `HEX-FORMAT.ext4`.
bool is_disk_name(std::string_view name) {
  constexpr std::size_t kHex = 64;
  constexpr std::string_view kEnding = ".ext4";
  if (!is_digest_name(name.substr(0, kHex)) || !name.ends_with(kEnding)) return false;
  name.remove_prefix(kHex);
  name.remove_suffix(kEnding.size());
  return name.size() > 1 && name.front() == '-';
}

/// Also those of earlier formats. Whoever has one open keeps it. Looking for an image's manifest is
/// no use of it, so nothing of the store is asked.
std::uint64_t remove_stale_disks(const Store& store, bool only_look) {
  constexpr std::size_t kHex = 64;
  std::uint64_t bytes = 0;
  for (const fs::path& file : list_folder(disks_folder(store))) {
    const std::string name = file.filename().string();
    if (!is_disk_name(name) || !is_own_file(file)) continue;
    const std::string hex = name.substr(0, kHex);
    const bool is_wanted = name.ends_with(fmt::format("-{}.ext4", kDiskFormat)) &&
                           fs::exists(store.root() / "blobs" / hex);
    if (is_wanted) continue;
    struct stat status {};
    if (::lstat(file.c_str(), &status) == 0) bytes += bytes_on_disk(status);
    if (!only_look) remove_tree(file);
  }
  return bytes;
}

fs::path provide_image_disk(const Store& store, const Image& image, Progress& progress) {
  fs::path disk = disks_folder(store) / disk_name(image.digest());
  if (is_disk_of(disk, image.digest())) return disk;
  make_own_folders(disks_folder(store));
  (void)remove_stale_disks(store, false);
  const TemporaryFolder scratch = store.scratch();
  const fs::path made = scratch.path() / "disk";
  while_doing("making a disk of the image", [&] {
    write_image_disk(store, image, made, progress);
    // On the disk before it has its name: after a power cut it is whole or not there.
    const Fd file = open_file(made, O_RDONLY);
    if (::fsync(file.get()) != 0 || ::rename(made.c_str(), disk.c_str()) != 0) {
      throw os_error(errno, "cannot write `{}`", disk.string());
    }
  });
  return disk;
}

}  // namespace mlenv
