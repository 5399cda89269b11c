#pragma once
// What ld.so(8) would load for a file of an image, without running any of it: what `ldd -v` says in
// a container of the image.
//
// As ld.so: a library that is loaded already answers to its soname; else RPATH of the file and of
// those that loaded it, LD_LIBRARY_PATH, RUNPATH, /etc/ld.so.cache, and the C library's own
// folders. Files for other processors are passed over. Folders `glibc-hwcaps` are looked into
// before the folder that they are in, the best level first, as on a processor that has them all.
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "images/inspect/image_tree.hpp"
#include "images/inspect/linker_cache.hpp"

namespace mlenv {

struct LinkedLibrary {
  std::string name;       ///< as it is asked for
  std::string path;       ///< where it is found, links not followed; empty: nowhere
  std::string needed_by;  ///< true path of the first file that asks for it
};

struct LackingVersion {
  std::string library;
  std::string version;
  std::string needed_by;
};

struct Linkage {
  std::vector<LinkedLibrary> libraries;  ///< in the order in which they are loaded
  std::vector<LackingVersion> versions;  ///< that a library which is found does not define
};

class Linker {
 public:
  /// `library_path` is LD_LIBRARY_PATH of the image's configuration.
  Linker(const ImageTree& tree, std::string_view library_path);

  /// `path` as the tree has it: a dynamically linked file. Throws `too-large` where an image asks
  /// for more look-ups than any honest one.
  Linkage link(const std::string& path);
  /// A library by its name, for a file that says nothing of where; empty: not found.
  std::string find_library(const std::string& name, const ElfFile& like);
  /// Whether a folder of LD_LIBRARY_PATH makes `path`, a true one, answer to the name.
  bool is_in_library_path(const std::string& path, const std::string& name);

 private:
  struct Loaded {
    std::string path;  ///< as it was found, absolute
    std::string real;
    const ElfFile* elf = nullptr;
    std::size_t loader = 0;
    std::vector<std::string> names;
  };
  struct Found {
    std::string real;
    const ElfFile* elf = nullptr;
  };

  void set_default_folders();
  /// Until the next call.
  const Found& file(const std::string& path);
  bool takes(const std::string& path, const ElfFile& like);
  bool search(const std::vector<std::string>& folders, const std::string& name, const ElfFile& like,
              std::string& found);
  bool search_cache(const std::string& name, const ElfFile& like, std::string& found);
  /// Among the entries for a level alone, or for every processor (no folder).
  bool search_cache_at(const std::string& name, const ElfFile& like, std::string_view hwcaps_folder,
                       std::string& found);
  /// Levels that copies of libraries may be for; none where there are no such copies.
  std::span<const std::string_view> levels_for(const ElfFile& like) const;
  std::vector<std::string> expanded(std::string_view folders, const std::string& of) const;
  bool search_rpaths(const std::vector<Loaded>& all, std::size_t loader, const std::string& name,
                     std::string& found);
  std::string locate(const std::vector<Loaded>& all, std::size_t loader, const std::string& name);
  static void check_versions(const std::vector<Loaded>& all, Linkage& out);

  const ImageTree& tree_;
  std::vector<std::string> library_path_;
  std::vector<std::string> default_folders_;
  bool has_hwcaps_ = false;
  std::string lib_ = "lib64";  ///< what `$LIB` stands for
  std::string platform_ = "x86_64";
  std::multimap<std::string, CachedLibrary> cache_;
  std::unordered_map<std::string, Found> files_;  ///< by path; forgotten when it grows
  std::size_t remembered_bytes_ = 0;
  std::size_t lookups_ = 0;
};

}  // namespace mlenv
