// The OCI layout folder. Several processes may write into one at once: `oci-layout` is made first,
// never replaced, and locked while index.json is read and written.
#include <fcntl.h>

#include "base/error.hpp"
#include "base/small_file.hpp"
#include "images/archive_parts.hpp"

namespace mlenv {
namespace {

/// Whether the file is that blob, whole; a size alone says little of what lies there.
bool is_blob_there(const fs::path& path, const Digest& digest, std::uint64_t size_bytes) {
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) != size_bytes || error) {
    return false;
  }
  const Fd fd = open_file(path);
  FdSource source{fd.get()};
  Sha256 hash;
  copy(source, hash);
  return hash.finish() == digest;
}

/// With its lock. Written in place, for a rename would leave others with a lock on a file that is
/// gone; one that was cut short before its text is completed.
FileLock lock_layout(const fs::path& folder) {
  const fs::path layout = folder / "oci-layout";
  // Everybody may read it, as what lies beside it.
  (void)open_to_write(layout, 0, 0644);
  FileLock lock = FileLock::wait(layout, FileLock::Mode::exclusive);
  if (mlenv::file_size(layout) == 0) {
    const Fd fd = open_file(layout, O_WRONLY);
    write_all(fd.get(), as_bytes(kLayoutText));
  }
  return lock;
}

}  // namespace

void write_layout(const Store& store, const ImageSet& image, const Reference& name,
                  const fs::path& folder, Activity& activity) {
  const fs::path blobs = folder / "blobs" / "sha256";
  make_folders(folder);
  (void)lock_layout(folder);  // from here on the folder is known as a layout
  make_folders(blobs);
  for (const auto& [digest, size_bytes] : image.blobs()) {
    const fs::path target = blobs / digest.hex();
    if (is_blob_there(target, digest, size_bytes)) {
      activity.advance(size_bytes);
      continue;
    }
    AtomicFile file{target};
    Counted counted{file, activity};
    copy_blob(store, image, digest, size_bytes, counted);
    file.commit();
  }
  const FileLock lock = lock_layout(folder);
  const fs::path index = folder / "index.json";
  write_file(index, updated_index(index, image, name));
}

}  // namespace mlenv
