#pragma once
// /etc/ld.so.cache, as ldconfig(8) writes it (glibc's dl-cache.h: the format since 2.2).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

struct CachedLibrary {
  std::string name;  ///< `libz.so.1`
  std::string path;
  std::uint64_t flags = 0;   ///< kind of ELF file: 0x303 for x86-64, 0xa03 for AArch64
  std::uint64_t hwcaps = 0;  ///< not 0: for some processors
  friend bool operator==(const CachedLibrary&, const CachedLibrary&) = default;
};

/// In the cache's order; empty for what is no such cache. What lies outside the text is left out.
std::vector<CachedLibrary> read_linker_cache(std::string_view text);

}  // namespace mlenv
