#include "runner/vm/disk/ext4_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include <ext2fs/ext2fs.h>

#include "base/error.hpp"
#include "images/tree_check.hpp"

namespace mlenv {
namespace {

constexpr std::uint32_t kExt4Block = 4096;
constexpr std::uint32_t kInodeBytes = 256;
constexpr std::uint64_t kBytesOfInode = 16384;  // so many bytes of disk for each
constexpr std::size_t kWriteChunk = std::size_t{1} << 20U;

bool is_full(errcode_t error) {
  return error == EXT2_ET_BLOCK_ALLOC_FAIL || error == EXT2_ET_INODE_ALLOC_FAIL;
}

void check_ext4(errcode_t error, std::string_view what) {
  if (error == 0) return;
  if (is_full(error)) {
    throw failure("disk-full", "the virtual machine's disk has no room for the image");
  }
  // Below its own numbers are those of the system.
  constexpr errcode_t kMostSystem = 4096;
  throw failure("disk-write", "cannot write the virtual machine's disk: {}", what)
      .because(error < kMostSystem ? errno_text(static_cast<int>(error))
                                   : fmt::format("libext2fs says {}", error));
}

/// libext2fs would cut it off.
void check_name_length(const std::string& name) {
  if (name.size() <= EXT2_NAME_LEN) return;
  throw failure("disk-write", "a name of the image is too long for the virtual machine's disk")
      .because(fmt::format("`{}…` has {} bytes", name.substr(0, 20), name.size()));
}

void write_at(const Fd& file, std::uint64_t at, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      throw os_error(count == 0 ? ENOSPC : errno, "cannot write the virtual machine's disk");
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
}

int folder_type(TarEntry::Type type) {
  switch (type) {
    case TarEntry::Type::char_device:
      return EXT2_FT_CHRDEV;
    case TarEntry::Type::block_device:
      return EXT2_FT_BLKDEV;
    case TarEntry::Type::fifo:
      return EXT2_FT_FIFO;
    default:
      return EXT2_FT_REG_FILE;
  }
}

int folder_type(const ext2_inode_large& inode) {
  if (LINUX_S_ISLNK(inode.i_mode)) return EXT2_FT_SYMLINK;
  if (LINUX_S_ISCHR(inode.i_mode)) return EXT2_FT_CHRDEV;
  if (LINUX_S_ISBLK(inode.i_mode)) return EXT2_FT_BLKDEV;
  return LINUX_S_ISFIFO(inode.i_mode) ? EXT2_FT_FIFO : EXT2_FT_REG_FILE;
}

constexpr unsigned kHalf = 16;

void fill_inode(ext2_inode_large& inode, const TarEntry& entry) {
  constexpr std::uint32_t kPermissions = 07777;
  constexpr std::uint32_t kLow = 0xffff;
  inode.i_mode = static_cast<__u16>((inode.i_mode & LINUX_S_IFMT) | (entry.mode & kPermissions));
  inode.i_uid = static_cast<__u16>(entry.uid & kLow);
  inode.i_uid_high = static_cast<__u16>(entry.uid >> kHalf);
  inode.i_gid = static_cast<__u16>(entry.gid & kLow);
  inode.i_gid_high = static_cast<__u16>(entry.gid >> kHalf);
  // Times before 1970 and after 2106 are no times of files in images.
  const std::int64_t time = std::clamp<std::int64_t>(entry.mtime, 0, INT32_MAX);
  inode.i_atime = inode.i_mtime = inode.i_ctime = inode.i_crtime = static_cast<__u32>(time);
}

ext2_inode* plain_inode(ext2_inode_large& inode) {
  return reinterpret_cast<ext2_inode*>(&inode);  // NOLINT: its first part, as libext2fs has it
}

bool is_zero(const char* data, std::size_t size) {
  return size == 0 || (data[0] == 0 && std::memcmp(data, data + 1, size - 1) == 0);
}

}  // namespace

struct Ext4Writer::State {
  ext2_filsys fs = nullptr;
  Fd file;
  Bytes buffer = Bytes(kWriteChunk);

  ext2_inode_large read(Node node) const {
    ext2_inode_large inode{};
    check_ext4(ext2fs_read_inode_full(fs, node, plain_inode(inode), sizeof inode), "an inode");
    return inode;
  }
  void write(Node node, ext2_inode_large& inode) const {
    check_ext4(ext2fs_write_inode_full(fs, node, plain_inode(inode), sizeof inode), "an inode");
  }
  Node make(Node parent, const TarEntry& entry) const {
    ext2_ino_t node = 0;
    const std::uint32_t mode = type_bits(entry.type);
    check_ext4(ext2fs_new_inode(fs, parent, static_cast<int>(mode), nullptr, &node), "a new inode");
    ext2_inode_large inode{};
    inode.i_mode = static_cast<__u16>(mode);
    inode.i_links_count = 1;
    inode.i_extra_isize = sizeof inode - EXT2_GOOD_OLD_INODE_SIZE;
    fill_inode(inode, entry);
    const bool has_content = entry.type == TarEntry::Type::file && entry.size_bytes > 0;
    if (has_content) inode.i_flags |= EXT4_EXTENTS_FL;
    // As the kernel packs a device's number (include/linux/kdev_t.h, new_encode_dev).
    constexpr std::uint32_t kByte = 0xff;
    inode.i_block[1] = (entry.device_minor & kByte) | (entry.device_major << 8U) |
                       ((entry.device_minor & ~kByte) << 12U);
    if (entry.type == TarEntry::Type::file || entry.type == TarEntry::Type::fifo) {
      inode.i_block[1] = 0;
    }
    ext2fs_inode_alloc_stats2(fs, node, +1, 0);
    check_ext4(ext2fs_write_inode_full(fs, node, plain_inode(inode), sizeof inode), "an inode");
    return node;
  }
  void set_xattrs(Node node, const TarEntry& entry) const {
    if (entry.xattrs.empty()) return;
    ext2_xattr_handle* handle = nullptr;
    check_ext4(ext2fs_xattrs_open(fs, node, &handle), "extended attributes");
    errcode_t error = ext2fs_xattrs_read(handle);
    for (const auto& [name, value] : entry.xattrs) {
      if (error == 0) error = ext2fs_xattr_set(handle, name.c_str(), value.data(), value.size());
    }
    ext2fs_xattrs_close(&handle);
    check_ext4(error, "extended attributes");
  }
};

Ext4Writer::Ext4Writer(const fs::path& path, std::uint64_t size_bytes, const Digest& id)
    : state_(std::make_unique<State>()) {
  state_->file = open_file(path, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (::ftruncate(state_->file.get(), static_cast<off_t>(size_bytes)) != 0) {
    throw os_error(errno, "cannot make `{}`", path.string());
  }
  ext2_super_block wanted{};
  wanted.s_rev_level = EXT2_DYNAMIC_REV;
  wanted.s_log_block_size = 2;  // 1024 << 2
  wanted.s_blocks_count = static_cast<__u32>(size_bytes / kExt4Block);
  wanted.s_inodes_count = static_cast<__u32>(size_bytes / kBytesOfInode);
  wanted.s_inode_size = kInodeBytes;
  wanted.s_log_groups_per_flex = 4;
  wanted.s_feature_compat = EXT2_FEATURE_COMPAT_EXT_ATTR;
  wanted.s_feature_incompat = EXT2_FEATURE_INCOMPAT_FILETYPE | EXT3_FEATURE_INCOMPAT_EXTENTS |
                              EXT4_FEATURE_INCOMPAT_FLEX_BG;
  wanted.s_feature_ro_compat = EXT2_FEATURE_RO_COMPAT_SPARSE_SUPER |
                               EXT2_FEATURE_RO_COMPAT_LARGE_FILE |
                               EXT4_FEATURE_RO_COMPAT_HUGE_FILE | EXT4_FEATURE_RO_COMPAT_DIR_NLINK |
                               EXT4_FEATURE_RO_COMPAT_EXTRA_ISIZE;
  check_ext4(ext2fs_initialize(path.c_str(), EXT2_FLAG_EXCLUSIVE, &wanted,
                               static_cast<io_manager>(ext4_file_access()), &state_->fs),
             "its first block");
  ext2_filsys fs = state_->fs;
  fs->now = 1;
  ext2_super_block& super = *fs->super;
  const std::string& bytes = id.hex();
  for (std::size_t i = 0; i < sizeof super.s_uuid; ++i) {
    super.s_uuid[i] = static_cast<__u8>(std::stoi(bytes.substr(2 * i, 2), nullptr, 16));
  }
  std::memcpy(super.s_hash_seed, super.s_uuid, sizeof super.s_hash_seed);
  super.s_def_hash_version = EXT2_HASH_HALF_MD4;
  super.s_min_extra_isize = super.s_want_extra_isize =
      sizeof(ext2_inode_large) - EXT2_GOOD_OLD_INODE_SIZE;
  super.s_mkfs_time = super.s_lastcheck = super.s_wtime = 0;
  super.s_max_mnt_count = -1;
  check_ext4(ext2fs_allocate_tables(fs), "its tables");
  check_ext4(ext2fs_mkdir(fs, EXT2_ROOT_INO, EXT2_ROOT_INO, nullptr), "its root");
  for (ext2_ino_t node = EXT2_ROOT_INO + 1; node < EXT2_FIRST_INODE(fs->super); ++node) {
    ext2fs_inode_alloc_stats2(fs, node, +1, 0);
  }
  ext2fs_inode_alloc_stats2(fs, EXT2_BAD_INO, +1, 0);
}

Ext4Writer::~Ext4Writer() {
  if (state_->fs != nullptr) ext2fs_free(state_->fs);
}

void Ext4Writer::link(Node parent, const std::string& name, Node node, int type) {
  check_name_length(name);
  errcode_t error = ext2fs_link(state_->fs, parent, name.c_str(), node, type);
  if (error == EXT2_ET_DIR_NO_SPACE) {
    check_ext4(ext2fs_expand_dir(state_->fs, parent), "a folder");
    error = ext2fs_link(state_->fs, parent, name.c_str(), node, type);
  }
  check_ext4(error, "a name");
}

Ext4Writer::Node Ext4Writer::add_folder(Node parent, const std::string& name,
                                        const TarEntry& entry) {
  check_name_length(name);
  ext2_ino_t node = 0;
  check_ext4(ext2fs_new_inode(state_->fs, parent, LINUX_S_IFDIR, nullptr, &node), "a new inode");
  errcode_t error = ext2fs_mkdir(state_->fs, parent, node, name.c_str());
  if (error == EXT2_ET_DIR_NO_SPACE) {
    check_ext4(ext2fs_expand_dir(state_->fs, parent), "a folder");
    error = ext2fs_mkdir(state_->fs, parent, node, name.c_str());
  }
  check_ext4(error, "a folder");
  set_attributes(node, entry);
  return node;
}

void Ext4Writer::set_attributes(Node node, const TarEntry& entry) {
  ext2_inode_large inode = state_->read(node);
  inode.i_extra_isize = sizeof inode - EXT2_GOOD_OLD_INODE_SIZE;
  fill_inode(inode, entry);
  state_->write(node, inode);
  state_->set_xattrs(node, entry);
}

Ext4Writer::Node Ext4Writer::add_file(Node parent, const std::string& name, const TarEntry& entry,
                                      Source& data) {
  const Node node = state_->make(parent, entry);
  write_content(node, entry.size_bytes, data);
  link(parent, name, node, EXT2_FT_REG_FILE);
  state_->set_xattrs(node, entry);
  return node;
}

/// Room first; then straight into it, past libext2fs, which would copy block by block.
void Ext4Writer::write_content(Node node, std::uint64_t size_bytes, Source& data) {
  if (size_bytes == 0) return;
  ext2_inode_large inode = state_->read(node);
  check_ext4(
      ext2fs_inode_size_set(state_->fs, plain_inode(inode), static_cast<ext2_off64_t>(size_bytes)),
      "a size");
  const blk64_t blocks = (size_bytes + kExt4Block - 1) / kExt4Block;
  check_ext4(ext2fs_fallocate(state_->fs, EXT2_FALLOCATE_FORCE_INIT, node, plain_inode(inode),
                              ~0ULL, 0, blocks),
             "a file");
  state_->write(node, inode);
  ext2_extent_handle_t handle = nullptr;
  check_ext4(ext2fs_extent_open2(state_->fs, node, plain_inode(inode), &handle), "a file");
  std::vector<ext2fs_extent> extents;
  ext2fs_extent extent{};
  for (errcode_t error = ext2fs_extent_get(handle, EXT2_EXTENT_ROOT, &extent); error == 0;
       error = ext2fs_extent_get(handle, EXT2_EXTENT_NEXT_LEAF, &extent)) {
    if ((extent.e_flags & EXT2_EXTENT_FLAGS_LEAF) != 0) extents.push_back(extent);
  }
  ext2fs_extent_free(handle);
  std::uint64_t left = size_bytes;
  for (const ext2fs_extent& one : extents) {
    std::uint64_t at = one.e_pblk * kExt4Block;
    std::uint64_t here = std::min<std::uint64_t>(left, std::uint64_t{one.e_len} * kExt4Block);
    left -= here;
    while (here > 0) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(here, kWriteChunk));
      std::size_t got = 0;
      while (got < part) {
        const std::size_t count = data.read(ByteSpan(state_->buffer).subspan(got, part - got));
        if (count == 0) throw failure("bad-layer", "a file of the image ends before its size");
        got += count;
      }
      const auto* const bytes = reinterpret_cast<const char*>(state_->buffer.data());  // NOLINT
      if (!is_zero(bytes, part)) write_at(state_->file, at, {bytes, part});
      at += part;
      here -= part;
    }
  }
  if (left > 0) throw failure("disk-write", "the virtual machine's disk has too little of a file");
}

Ext4Writer::Node Ext4Writer::add_symlink(Node parent, const std::string& name,
                                         const TarEntry& entry) {
  check_name_length(name);
  ext2_ino_t node = 0;
  check_ext4(ext2fs_new_inode(state_->fs, parent, LINUX_S_IFLNK, nullptr, &node), "a new inode");
  errcode_t error = ext2fs_symlink(state_->fs, parent, node, name.c_str(), entry.link.c_str());
  if (error == EXT2_ET_DIR_NO_SPACE) {
    check_ext4(ext2fs_expand_dir(state_->fs, parent), "a folder");
    error = ext2fs_symlink(state_->fs, parent, node, name.c_str(), entry.link.c_str());
  }
  check_ext4(error, "a link");
  TarEntry link = entry;
  link.mode = 0777;
  link.xattrs.clear();
  set_attributes(node, link);
  return node;
}

Ext4Writer::Node Ext4Writer::add_special(Node parent, const std::string& name,
                                         const TarEntry& entry) {
  const Node node = state_->make(parent, entry);
  link(parent, name, node, folder_type(entry.type));
  return node;
}

void Ext4Writer::add_hardlink(Node parent, const std::string& name, Node target) {
  constexpr unsigned kMostLinks = 65000;  // the kernel's EXT4_LINK_MAX
  ext2_inode_large inode = state_->read(target);
  if (inode.i_links_count >= kMostLinks) {
    throw failure("disk-write", "a file of the image has more names than ext4 can count")
        .because(fmt::format("`{}` is one of more than {}", name, kMostLinks));
  }
  ++inode.i_links_count;
  state_->write(target, inode);
  link(parent, name, target, folder_type(inode));
}

void Ext4Writer::remove(Node parent, const std::string& name, Node node) {
  check_ext4(ext2fs_unlink(state_->fs, parent, name.c_str(), node, 0), "a name");
  ext2_inode_large inode = state_->read(node);
  if (--inode.i_links_count == 0) {
    // A short link lies in the inode itself.
    if (LINUX_S_ISREG(inode.i_mode) || (LINUX_S_ISLNK(inode.i_mode) && inode.i_blocks > 0)) {
      check_ext4(ext2fs_punch(state_->fs, node, plain_inode(inode), nullptr, 0, ~0ULL), "a file");
      // What libext2fs still holds of these blocks must not come after what they hold next.
      check_ext4(io_channel_flush(state_->fs->io), "a file");
    }
    inode.i_dtime = 1;
    ext2fs_inode_alloc_stats2(state_->fs, node, -1, 0);
  }
  state_->write(node, inode);
}

void Ext4Writer::finish() {
  state_->fs->super->s_wtime = 0;
  check_ext4(ext2fs_close_free(&state_->fs), "its end");
}

}  // namespace mlenv
