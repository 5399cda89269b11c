#pragma once
// Unpacked layers seen as one tree, as overlayfs shows them: upper layers replace and hide what
// lower ones hold. Nothing of the host is reached through a layer's links.
#include <sys/stat.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace mlenv {

/// How files get into a folder of all.
enum class Filled {
  with_links,   ///< hard links, copies where there can be none: not to be written into
  with_copies,  ///< which share their blocks where the file system can do that (FICLONE)
};

class StackedTrees {
 public:
  /// The bottom layer first, as `unpack_image` gives them.
  explicit StackedTrees(const std::vector<fs::path>& layers);

  /// Where `path` (from the root) is once all links are followed, relative and clean; nullopt when
  /// nothing is there.
  std::optional<std::string> resolve(std::string_view path) const;
  /// Content of the regular file that `path` leads to; nullopt when there is none. Throws
  /// `too-large` over `limit` bytes.
  std::optional<std::string> read(std::string_view path, std::uint64_t limit) const;
  /// Whether `path` leads to a regular file with an execute bit.
  bool is_program(std::string_view path) const;
  /// Names in the folder that `path` leads to, sorted; none when it is absent.
  std::vector<std::string> list(std::string_view path) const;

  /// Fills the empty folder `root` with the files, so that one folder shows all. Folders have mode
  /// 0755; devices are left out, and so is what the caller may not read.
  void link_into(const fs::path& root, Filled how = Filled::with_links) const;

 private:
  struct Entry {
    Fd fd;  ///< O_PATH, of the link itself where it is one
    struct stat status;
  };
  Entry open(std::size_t layer, const std::string& path) const;
  std::optional<Entry> top_entry(const std::string& path) const;
  bool hides_below(std::size_t layer, const std::string& path) const;
  std::optional<Entry> follow(std::string_view path, std::string& real) const;

  std::vector<fs::path> paths_;
  std::vector<Fd> layers_;
};

}  // namespace mlenv
