#include "images/inspect/linkage_facts.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/paths.hpp"
#include "base/text.hpp"
#include "images/inspect/linkage.hpp"
#include "images/inspect/loaded_libraries.hpp"
#include "images/inspect/software.hpp"

namespace mlenv {
namespace {

/// `2.34` of `GLIBC_2.34`; empty for others, `GLIBC_PRIVATE` among them.
std::string_view number_of(std::string_view version, std::string_view prefix) {
  if (!version.starts_with(prefix)) return {};
  version.remove_prefix(prefix.size());
  return !version.empty() && is_digit(version.front()) ? version : std::string_view{};
}

/// The highest version of one prefix.
class Highest {
 public:
  explicit Highest(std::string_view prefix) : prefix_(prefix) {}
  /// Whether it is higher than what was there.
  bool take(std::string_view version) {
    const std::string_view number = number_of(version, prefix_);
    if (number.empty() ||
        (!text_.empty() && !is_older_version(number_of(text_, prefix_), number))) {
      return false;
    }
    text_ = version;
    return true;
  }
  const std::string& text() const { return text_; }

 private:
  std::string_view prefix_;
  std::string text_;
};

bool is_debug_file(std::string_view path) { return path.starts_with("usr/lib/debug/"); }

struct SystemLibrary {
  std::string_view prefix;  ///< of its versions
  const char* name;
};

/// What the image's files ask of one library of the system's.
SymbolVersions symbol_versions(const ImageTree& tree, std::uint64_t machine, Linker& linker,
                               const SystemLibrary& library) {
  SymbolVersions found;
  Highest needed{library.prefix};
  const ElfFile* like = nullptr;
  for (const auto& [path, node] : tree.nodes()) {
    if (node.elf == nullptr || node.elf->machine != machine || is_debug_file(path)) continue;
    if (like == nullptr) like = node.elf;
    for (const VersionNeed& need : node.elf->version_needs) {
      for (const std::string& version : need.versions) {
        if (needed.take(version)) found.needed_by = "/" + path;
      }
    }
  }
  found.needed = needed.text();
  if (like != nullptr) {
    const ImageTree::Node* node = tree.find(linker.find_library(library.name, *like));
    Highest present{library.prefix};
    if (node != nullptr && node->elf != nullptr) {
      for (const std::string& version : node->elf->versions) present.take(version);
    }
    found.present = present.text();
  }
  return found;
}

Fact<std::string> least_kernel_of(const ImageTree& tree, std::uint64_t machine, Linker& linker) {
  for (const auto& [path, node] : tree.nodes()) {
    if (node.elf == nullptr || node.elf->machine != machine) continue;
    const std::string libc = linker.find_library("libc.so.6", *node.elf);
    const ImageTree::Node* found = libc.empty() ? nullptr : tree.find(libc);
    if (found == nullptr || found->elf == nullptr) break;
    if (found->elf->least_kernel.empty()) {
      return unknown<std::string>(libc + " has no .note.ABI-tag");
    }
    return known(found->elf->least_kernel, ".note.ABI-tag of " + libc);
  }
  return known(std::string{}, "no C library of GNU's");
}

/// Who misses a thing.
struct Missed {
  std::string first;
  std::uint64_t files = 0;
  void add(const std::string& path) {
    if (files++ == 0) first = "/" + path;
  }
};

/// The first file of that name for the processor; empty: none.
std::string lying_elsewhere(const ImageTree& tree, std::uint64_t machine,
                            std::string_view library) {
  for (const auto& [path, node] : tree.nodes()) {
    if (last_part(path) != library) continue;
    const ImageTree::Node* file = tree.find(path);
    if (file != nullptr && file->elf != nullptr && file->elf->machine == machine) return "/" + path;
  }
  return {};
}

/// Whether it is what somebody starts or imports, not a library or plugin that comes with it.
bool is_started(std::string_view path, const ElfFile& elf) {
  if (!elf.interpreter.empty()) return true;
  const std::string_view name = last_part(path);
  if (!name.ends_with(".so")) return false;
  // Tk for those who want it, as in official images of Python; one module for each FFmpeg.
  if (name.starts_with("_tkinter.") || path.find("/torio/") != std::string_view::npos) return false;
  if (name.find(".cpython-") != std::string_view::npos || name.ends_with(".abi3.so")) return true;
  return path.find("-packages/") != std::string_view::npos && !name.starts_with("lib");
}

/// Of Python packages without a module in machine code: a library that no file names is what their
/// sources load (ctypes, as lightgbm, xgboost and llvmlite do).
class LoadedBySources {
 public:
  explicit LoadedBySources(const ImageTree& tree) {
    for (const auto& [path, node] : tree.nodes()) {
      if (node.elf == nullptr) continue;
      named_.insert(node.elf->needed.begin(), node.elf->needed.end());
      if (is_started(path, *node.elf)) with_modules_.insert(std::string(package_folder(path)));
    }
  }

  bool holds(std::string_view path, const ElfFile& elf) const {
    const std::string_view folder = package_folder(path);
    // `numpy.libs` has what modules name; NVIDIA's packages have plugins that few machines use.
    if (folder.empty() || folder.ends_with(".libs") || last_part(folder) == "nvidia") return false;
    const std::string_view name = last_part(path);
    return name.starts_with("lib") && name.ends_with(".so") &&
           !with_modules_.contains(std::string(folder)) && !named_.contains(std::string(name)) &&
           !named_.contains(elf.soname);
  }

 private:
  /// `usr/lib/python3/site-packages/lightgbm`; empty: of no package.
  static std::string_view package_folder(std::string_view path) {
    constexpr std::string_view kFolder = "-packages/";
    const std::size_t at = path.find(kFolder);
    if (at == std::string_view::npos) return {};
    const std::size_t end = path.find('/', at + kFolder.size());
    return end == std::string_view::npos ? std::string_view{} : path.substr(0, end);
  }

  std::set<std::string> named_;
  std::set<std::string> with_modules_;
};

/// Of one that is missing twice, it is optional where both say so.
void add_loaded(std::vector<MissingLibrary> loaded, std::vector<MissingLibrary>& missing) {
  for (MissingLibrary& one : loaded) {
    const auto linked = std::find_if(missing.begin(), missing.end(), [&](const auto& other) {
      return other.library == one.library;
    });
    if (linked == missing.end()) {
      missing.push_back(std::move(one));
    } else {
      linked->optional = linked->optional && one.optional;
    }
  }
}

}  // namespace

void take_linkage(const ImageTree& tree, std::uint64_t machine, const std::string& library_path,
                  const char* source, ImageFacts& facts) {
  Linker linker{tree, library_path};
  std::map<std::string, Missed> libraries;
  std::map<std::pair<std::string, std::string>, Missed> versions;
  std::set<std::string> at_start;
  const LoadedBySources loaded{tree};
  for (const auto& [path, node] : tree.nodes()) {
    const bool is_linked = node.elf != nullptr && node.entry->kind == "file" &&
                           node.elf->machine == machine && node.elf->is_dynamic;
    if (!is_linked || is_debug_file(path)) continue;
    const Linkage linkage = linker.link(path);
    const bool starts = is_started(path, *node.elf) || loaded.holds(path, *node.elf);
    for (const LinkedLibrary& one : linkage.libraries) {
      if (!one.path.empty()) continue;
      if (one.needed_by == path) libraries[one.name].add(path);
      if (starts) at_start.insert(one.name);
    }
    for (const LackingVersion& one : linkage.versions) {
      if (one.needed_by == path) versions[{one.library, one.version}].add(path);
    }
  }
  std::vector<MissingLibrary> missing;
  for (const auto& [name, who] : libraries) {
    missing.push_back({name, who.first, who.files, is_from_driver(name),
                       lying_elsewhere(tree, machine, name), !at_start.contains(name)});
  }
  add_loaded(missing_loaded_libraries(tree), missing);
  std::sort(missing.begin(), missing.end(),
            [](const auto& a, const auto& b) { return a.library < b.library; });
  std::vector<MissingVersion> lacking;
  for (const auto& [what, who] : versions) {
    lacking.push_back({what.first, what.second, who.first, who.files});
  }
  facts.missing_libraries = known(std::move(missing), source);
  facts.missing_versions = known(std::move(lacking), source);
  facts.glibc = known(symbol_versions(tree, machine, linker, {"GLIBC_", "libc.so.6"}), source);
  facts.libstdcxx =
      known(symbol_versions(tree, machine, linker, {"GLIBCXX_", "libstdc++.so.6"}), source);
  facts.least_kernel = least_kernel_of(tree, machine, linker);
}

}  // namespace mlenv
