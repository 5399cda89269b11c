#include "images/inspect/linkage.hpp"

#include <elf.h>
#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

/// Where a C library of a kind has its dynamic linker, and what it calls its folders.
struct LinkerKind {
  std::string_view linker;
  std::string_view multiarch;
  std::string_view platform;
};
constexpr std::array<LinkerKind, 4> kKinds = {
    {{"/lib64/ld-linux-x86-64.so.2", "x86_64-linux-gnu", "x86_64"},
     {"/lib/ld-linux-aarch64.so.1", "aarch64-linux-gnu", "aarch64"},
     {"/lib64/ld64.so.2", "powerpc64le-linux-gnu", "power8"},
     {"/lib/ld64.so.1", "s390x-linux-gnu", "z13"}}};

/// The best first (glibc, sysdeps/x86_64/dl-hwcaps_subdirs.c).
constexpr std::array<std::string_view, 3> kHwcapsLevels = {"x86-64-v4", "x86-64-v3", "x86-64-v2"};
constexpr std::string_view kHwcapsFolder = "/glibc-hwcaps/";

/// A chain of libraries that need each other is longer nowhere.
constexpr std::size_t kMostLoaded = 4096;
constexpr std::size_t kLongestLibraryName = 255;  // NAME_MAX: no file system has a longer one
/// What look-ups may remember, and how many there may be (PyTorch's image: two million).
constexpr std::size_t kMostRemembered = std::size_t{32} << 20U;
constexpr std::size_t kMostLookups = 50'000'000;

/// What ldconfig notes of an ELF file for this processor; 0: anything.
std::uint64_t cache_flags(const ElfFile& elf) {
  if (elf.machine == EM_X86_64 && elf.bits == 64) return 0x303;
  return elf.machine == EM_AARCH64 ? 0xa03 : 0;
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

bool is_same_kind(const ElfFile& a, const ElfFile& b) {
  return a.machine == b.machine && a.bits == b.bits && a.is_little_endian == b.is_little_endian;
}

}  // namespace

Linker::Linker(const ImageTree& tree, std::string_view library_path) : tree_(tree) {
  set_default_folders();
  has_hwcaps_ = std::any_of(tree_.nodes().begin(), tree_.nodes().end(), [](const auto& node) {
    return node.first.find(kHwcapsFolder) != std::string::npos;
  });
  library_path_ = expanded(library_path, "");
  const ImageTree::Node* cache = tree_.find("etc/ld.so.cache");
  if (cache == nullptr || cache->text == nullptr) return;
  for (CachedLibrary& one : read_linker_cache(*cache->text)) {
    std::string name = one.name;
    cache_.emplace(std::move(name), std::move(one));
  }
}

void Linker::set_default_folders() {
  default_folders_ = {"/lib64", "/usr/lib64"};
  for (const LinkerKind& kind : kKinds) {
    const auto real = tree_.resolve(kind.linker);
    if (!real) continue;
    platform_ = kind.platform;
    const std::string multiarch{kind.multiarch};
    if (real->find(multiarch) != std::string::npos) {
      lib_ = "lib/" + multiarch;
      default_folders_ = {"/lib/" + multiarch, "/usr/lib/" + multiarch, "/lib", "/usr/lib"};
    }
    return;
  }
  const bool is_musl =
      std::any_of(tree_.nodes().begin(), tree_.nodes().end(),
                  [](const auto& node) { return last_part(node.first).starts_with("ld-musl-"); });
  if (is_musl) default_folders_ = {"/lib", "/usr/local/lib", "/usr/lib"};
}

const Linker::Found& Linker::file(const std::string& path) {
  if (++lookups_ > kMostLookups) {
    throw failure("too-large", "the image's libraries cannot be followed")
        .because("its files name too many libraries in too many folders");
  }
  if (remembered_bytes_ > kMostRemembered) {
    files_.clear();
    remembered_bytes_ = 0;
  }
  const auto [at, is_new] = files_.try_emplace(path);
  if (is_new) remembered_bytes_ += path.size() + sizeof(*at);
  if (is_new) {
    if (auto real = tree_.resolve(path)) {
      at->second.elf = tree_.nodes().find(*real)->second.elf;
      at->second.real = std::move(*real);
    }
  }
  return at->second;
}

bool Linker::takes(const std::string& path, const ElfFile& like) {
  const ElfFile* elf = file(path).elf;
  return elf != nullptr && is_same_kind(*elf, like);
}

bool Linker::search(const std::vector<std::string>& folders, const std::string& name,
                    const ElfFile& like, std::string& found) {
  for (const std::string& folder : folders) {
    for (const std::string_view level : levels_for(like)) {
      found = folder + std::string(kHwcapsFolder) + std::string(level) + "/" + name;
      if (takes(found, like)) return true;
    }
    found = folder + "/" + name;
    if (takes(found, like)) return true;
  }
  return false;
}

std::span<const std::string_view> Linker::levels_for(const ElfFile& like) const {
  const bool has_levels = has_hwcaps_ && like.machine == EM_X86_64 && like.bits == 64;
  return has_levels ? std::span<const std::string_view>(kHwcapsLevels)
                    : std::span<const std::string_view>();
}

bool Linker::search_cache(const std::string& name, const ElfFile& like, std::string& found) {
  for (const std::string_view level : levels_for(like)) {
    const std::string folder = std::string(kHwcapsFolder) + std::string(level) + "/";
    if (search_cache_at(name, like, folder, found)) return true;
  }
  return search_cache_at(name, like, "", found);
}

bool Linker::search_cache_at(const std::string& name, const ElfFile& like,
                             std::string_view hwcaps_folder, std::string& found) {
  const std::uint64_t flags = cache_flags(like);
  auto [at, end] = cache_.equal_range(name);
  for (; at != end; ++at) {
    const CachedLibrary& one = at->second;
    if (flags != 0 && one.flags != flags) continue;
    const bool fits = hwcaps_folder.empty()
                          ? one.hwcaps == 0
                          : one.hwcaps != 0 && one.path.find(hwcaps_folder) != std::string::npos;
    if (!fits) continue;
    found = one.path;
    if (takes(found, like)) return true;
  }
  return false;
}

std::vector<std::string> Linker::expanded(std::string_view folders, const std::string& of) const {
  std::vector<std::string> list;
  for (const std::string_view item : split(folders, ':')) {
    std::string folder{item};
    for (const std::string_view name : {"ORIGIN", "LIB", "PLATFORM"}) {
      const std::string value = name == "ORIGIN" ? std::string(folder_of(of))
                                : name == "LIB"  ? lib_
                                                 : platform_;
      replace_all(folder, "${" + std::string(name) + "}", value);
      replace_all(folder, "$" + std::string(name), value);
    }
    // What is relative is so to wherever the program is started.
    if (folder.starts_with('/')) list.push_back(std::move(folder));
  }
  return list;
}

bool Linker::search_rpaths(const std::vector<Loaded>& all, std::size_t loader,
                           const std::string& name, std::string& found) {
  const ElfFile& like = *all[0].elf;
  for (std::size_t at = loader;; at = all[at].loader) {
    const Loaded& one = all[at];
    if (one.elf->runpath.empty() && !one.elf->rpath.empty() &&
        search(expanded(one.elf->rpath, one.path), name, like, found)) {
      return true;
    }
    if (at == 0) return false;
  }
}

std::string Linker::locate(const std::vector<Loaded>& all, std::size_t loader,
                           const std::string& name) {
  const Loaded& by = all[loader];
  const ElfFile& like = *all[0].elf;
  std::string found;
  if (name.size() > kLongestLibraryName) return {};
  if (name.find('/') != std::string::npos) {
    const std::vector<std::string> paths = expanded(name, by.path);
    return !paths.empty() && takes(paths.front(), like) ? paths.front() : std::string{};
  }
  if (by.elf->runpath.empty() && search_rpaths(all, loader, name, found)) return found;
  if (search(library_path_, name, like, found)) return found;
  if (!by.elf->runpath.empty() && search(expanded(by.elf->runpath, by.path), name, like, found)) {
    return found;
  }
  if (!by.elf->no_default_folders) {
    if (search_cache(name, like, found)) return found;
    if (search(default_folders_, name, like, found)) return found;
  }
  return {};
}

std::string Linker::find_library(const std::string& name, const ElfFile& like) {
  ElfFile plain;
  plain.machine = like.machine;
  plain.bits = like.bits;
  plain.is_little_endian = like.is_little_endian;
  const std::vector<Loaded> all = {{"/", "", &plain, 0, {}}};
  return locate(all, 0, name);
}

bool Linker::is_in_library_path(const std::string& path, const std::string& name) {
  const ImageTree::Node* node = tree_.find(path);
  std::string found;
  return node != nullptr && node->elf != nullptr &&
         search(library_path_, name, *node->elf, found) && file(found).real == path;
}

void Linker::check_versions(const std::vector<Loaded>& all, Linkage& out) {
  const auto answers = [&all](const std::string& name) -> const Loaded* {
    for (const Loaded& one : all) {
      if (one.elf->soname == name ||
          std::find(one.names.begin(), one.names.end(), name) != one.names.end()) {
        return &one;
      }
    }
    return nullptr;
  };
  for (const Loaded& one : all) {
    for (const VersionNeed& need : one.elf->version_needs) {
      const Loaded* library = answers(need.library);
      if (library == nullptr || library->elf->versions.empty()) continue;
      for (const std::string& version : need.versions) {
        const auto& has = library->elf->versions;
        if (std::binary_search(has.begin(), has.end(), version)) continue;
        out.versions.push_back({need.library, version, one.real});
      }
    }
  }
}

Linkage Linker::link(const std::string& path) {
  Linkage out;
  const ImageTree::Node* node = tree_.find(path);
  if (node == nullptr || node->elf == nullptr) return out;
  std::vector<Loaded> all = {{"/" + path, path, node->elf, 0, {}}};
  for (std::size_t at = 0; at < all.size() && all.size() < kMostLoaded; ++at) {
    for (const std::string& name : all[at].elf->needed) {
      const auto known = std::find_if(all.begin(), all.end(), [&](const Loaded& one) {
        return one.elf->soname == name ||
               std::find(one.names.begin(), one.names.end(), name) != one.names.end();
      });
      // One that was not found is searched again: this file may say better where it is.
      if (known != all.end()) continue;
      const std::string found = locate(all, at, name);
      out.libraries.push_back({name, found, all[at].real});
      if (found.empty()) continue;
      const Found& real = file(found);
      const auto same = std::find_if(all.begin(), all.end(),
                                     [&](const Loaded& one) { return one.real == real.real; });
      if (same != all.end()) {
        same->names.push_back(name);
      } else {
        all.push_back({found, real.real, real.elf, at, {name}});
      }
    }
  }
  check_versions(all, out);
  return out;
}

}  // namespace mlenv
