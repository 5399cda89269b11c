#pragma once
// Files: whole-file reads, atomic writes, temporary folders, safe removal. Paths are host paths.
#include <fcntl.h>
#include <sys/stat.h>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/handle.hpp"

namespace mlenv {

namespace fs = std::filesystem;

/// Opens for reading; throws with `absent`, `permission` or `io`.
Fd open_file(const fs::path& path);
/// Opens with open(2) flags (O_CLOEXEC is added) or throws.
Fd open_file(const fs::path& path, int flags, mode_t mode = 0666);

std::string read_file(const fs::path& path);
/// nullopt when it does not exist; other failures throw.
std::optional<std::string> read_file_if_exists(const fs::path& path);
std::uint64_t file_size(const fs::path& path);

/// Makes the folder and its parents; an existing folder is fine.
void make_folders(const fs::path& path);

/// Full paths of a folder's entries, sorted; none when there is no such folder.
std::vector<fs::path> list_folder(const fs::path& path);

/// Removes a tree without following links, also one whose folders lack write permission (0555).
/// Absent is fine. Throws on the first entry that cannot be removed.
void remove_tree(const fs::path& path);
/// The same for `name` (one path part) in an open folder.
void remove_tree_at(int folder_fd, const std::string& name);

/// Takes the room for a file of that size at once: fewer pieces on the disk, and less work for each
/// write that follows. Does nothing for small files and where the file system cannot; throws
/// `no-space`.
void reserve_room(int fd, std::uint64_t size_bytes);
/// Writes all of `data`, retrying short writes; throws `no-space` and its kin.
void write_all(int fd, ByteView data);

class FdSource final : public Source {
 public:
  explicit FdSource(int fd) : fd_(fd) {}
  std::size_t read(ByteSpan out) override;

 private:
  int fd_;
};

/// Reads `length` bytes from `offset` with pread, so that many may share one descriptor. Throws
/// `truncated` when the file ends before.
class SliceSource final : public Source {
 public:
  SliceSource(int fd, std::uint64_t offset, std::uint64_t length)
      : fd_(fd), offset_(offset), left_(length) {}
  std::size_t read(ByteSpan out) override;

 private:
  int fd_;
  std::uint64_t offset_;
  std::uint64_t left_;
};

class FdSink final : public Sink {
 public:
  explicit FdSink(int fd) : fd_(fd) {}
  void write(ByteView data) override { write_all(fd_, data); }

 private:
  int fd_;
};

/// A file that appears under its name only in `commit`, whole, its bytes on the disk before that.
/// Forgetting `commit` leaves no file, nor does kill -9, but where the file system has no files
/// without names: there it lies beside the target until then, as `.tmp-` and something.
class AtomicFile final : public Sink {
 public:
  explicit AtomicFile(fs::path target, mode_t mode = 0644);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile() override;
  void write(ByteView data) override { write_all(fd_.get(), data); }
  int fd() const { return fd_.get(); }
  /// `durable` false leaves the fsync to a later sync of the whole file system.
  void commit(bool durable = true);

 private:
  fs::path target_;
  fs::path temporary_;
  Fd fd_;
  bool committed_ = false;
};

void write_file(const fs::path& path, std::string_view text, bool durable = true);

/// A folder that is removed with the object. Made below `parent` with a random name.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const fs::path& parent, std::string_view prefix = "tmp-");
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();
  const fs::path& path() const { return path_; }
  /// Gives the folder up: it stays.
  fs::path release() { return std::exchange(path_, {}); }

 private:
  fs::path path_;
};

/// $TMPDIR, else /tmp.
fs::path temporary_root();

/// An advisory lock (flock) on a file that is made when absent; freed with the object or the
/// process.
class FileLock {
 public:
  enum class Mode { shared, exclusive };
  /// Waits for it.
  static FileLock wait(const fs::path& path, Mode mode);
  /// nullopt when somebody else holds it.
  static std::optional<FileLock> attempt(const fs::path& path, Mode mode);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace mlenv
