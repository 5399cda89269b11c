#pragma once
// An image as the disk of a virtual machine: what its layers show together, as an ext4 file system.
#include "base/files.hpp"
#include "base/progress.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Of the bytes of such disks: another number, another file.
inline constexpr int kDiskFormat = 1;

/// Writes it, layer by layer from the top, none of them held in memory: owners, modes, times, hard
/// links, devices and extended attributes as the layers have them, whiteouts applied. The same
/// image gives the same bytes. Throws `damaged`, `bad-layer`, `disk-write`.
void write_image_disk(const Store& store, const Image& image, const fs::path& path,
                      Progress& progress);

/// STORE/vm/disks/DIGEST-FORMAT.ext4, made where it is not there yet. On the way disks go whose
/// images the store does not have any more.
fs::path provide_image_disk(const Store& store, const Image& image, Progress& progress);

/// Disks whose images the store does not have any more: takes them away, unless it is only to look.
/// Bytes on the disk.
std::uint64_t remove_stale_disks(const Store& store, bool only_look);

}  // namespace mlenv
