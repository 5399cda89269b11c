#pragma once
// The files of an image seen from outside: every path is resolved beneath its root, links included
// (base/beneath.hpp), so that an image cannot make us touch the host's files.
#include <sys/stat.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// Who writes where this process cannot: beyond the root of a container that runs.
class ImageWriter {
 public:
  ImageWriter() = default;
  ImageWriter(const ImageWriter&) = delete;
  ImageWriter& operator=(const ImageWriter&) = delete;
  virtual ~ImageWriter() = default;
  virtual void write(const std::string& path, std::string_view text, mode_t mode) = 0;
  virtual void make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) = 0;
};

class ImageRoot {
 public:
  explicit ImageRoot(const fs::path& folder);
  /// Read through `folder`, written by `writer`, which outlives this.
  ImageRoot(Fd folder, ImageWriter& writer) : folder_(std::move(folder)), writer_(&writer) {}

  /// A regular file's text, its first `limit` bytes; nullopt when it is absent or something else.
  std::optional<std::string> read(const std::string& path,
                                  std::size_t limit = std::size_t{16} << 20) const;
  bool exists(const std::string& path) const;
  bool is_folder(const std::string& path) const;
  /// Where a link leads; nullopt when `path` is none.
  std::optional<std::string> link(const std::string& path) const;
  /// Names in a folder, sorted; empty when it is absent. Throws `io` where it cannot be read
  /// through.
  std::vector<std::string> list(const std::string& path) const;
  /// A new file in the place of whatever was there (a link is replaced, not followed). Its folders
  /// are made when absent. Throws `image-root`.
  void write(const std::string& path, std::string_view text, mode_t mode = 0644) const;

  /// A file or a link; nothing where it is absent, or cannot be removed. By this process alone.
  void remove(const std::string& path) const;
  /// nullopt when it is absent. Links are followed.
  std::optional<struct stat> status(const std::string& path) const;
  /// Where it lies on this machine, no link being left on the way. Throws `image-root`.
  fs::path on_host(const std::string& path) const;
  /// With those above it where they are absent; only the last one gets the owner. Throws
  /// `image-root`.
  void make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) const;

  enum class Program { found, absent, not_executable };
  Program program(const std::string& path) const;

 private:
  Fd open(const std::string& path, int flags) const;
  Fd make_folders(const fs::path& path) const;
  Fd folder_;
  ImageWriter* writer_ = nullptr;  ///< nullptr: this process writes itself
};

}  // namespace mlenv
