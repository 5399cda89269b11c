// What is called of libext2fs.
#include <cstdio>

#include <ext2fs/ext2fs.h>

#include "base/late_library.hpp"
#include "runner/vm/disk/ext4_writer.hpp"

namespace {
mlenv::LateLibrary library{MLENV_LATE_EXT2FS};
}  // namespace

MLENV_LATE_1(library, ext2fs_allocate_tables)
MLENV_LATE_1(library, ext2fs_close_free)
MLENV_LATE_2(library, ext2fs_expand_dir)
MLENV_LATE_1(library, ext2fs_extent_free)
MLENV_LATE_3(library, ext2fs_extent_get)
MLENV_LATE_4(library, ext2fs_extent_open2)
MLENV_LATE_7(library, ext2fs_fallocate)  // NOLINT(readability-function-size): as it is there
MLENV_LATE_1(library, ext2fs_free)
MLENV_LATE_5(library, ext2fs_initialize)
MLENV_LATE_4(library, ext2fs_inode_alloc_stats2)
MLENV_LATE_3(library, ext2fs_inode_size_set)
MLENV_LATE_5(library, ext2fs_link)
MLENV_LATE_4(library, ext2fs_mkdir)
MLENV_LATE_5(library, ext2fs_new_inode)
MLENV_LATE_6(library, ext2fs_punch)  // NOLINT(readability-function-size)
MLENV_LATE_4(library, ext2fs_read_inode_full)
MLENV_LATE_5(library, ext2fs_symlink)
MLENV_LATE_5(library, ext2fs_unlink)
MLENV_LATE_4(library, ext2fs_write_inode_full)
MLENV_LATE_4(library, ext2fs_xattr_set)
MLENV_LATE_1(library, ext2fs_xattrs_close)
MLENV_LATE_3(library, ext2fs_xattrs_open)
MLENV_LATE_1(library, ext2fs_xattrs_read)

namespace mlenv {

void* ext4_file_access() { return *static_cast<io_manager*>(library.function("unix_io_manager")); }

}  // namespace mlenv
