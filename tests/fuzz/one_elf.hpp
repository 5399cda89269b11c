#pragma once
// What must hold for any bytes given as an ELF file, or as a dynamic linker's cache.
#include <algorithm>
#include <stdexcept>

#include "images/inspect/elf.hpp"
#include "images/inspect/linker_cache.hpp"

namespace mlenv::fuzz {

/// A file as it streams by, in parts of some size.
inline std::optional<ElfFile> streamed_elf(ByteView input, std::size_t part) {
  PassingBytes bytes{{}};
  for (const ByteRange& range : elf_tables(input.first(std::min(part, input.size())))) {
    bytes.keep(range);
  }
  FatbinScanner scanner;
  for (std::size_t at = 0; at < input.size(); at += part) {
    const ByteView next = input.subspan(at, std::min(part, input.size() - at));
    bytes.write(next);
    scanner.write(next);
  }
  auto elf = read_elf(bytes);
  if (elf) elf->device_code = device_code_of(scanner.runs(), fatbin_sections(bytes));
  return elf;
}

/// True when it was read. Throws std::logic_error when the way in which the bytes come matters.
inline bool one_elf(ByteView input) {
  constexpr std::size_t kSmallPart = 61;
  (void)read_linker_cache(as_text(input));
  const auto elf = streamed_elf(input, input.size() + 1);
  if (streamed_elf(input, kSmallPart) != elf) {
    throw std::logic_error("an ELF file differs by how it streams by");
  }
  PassingBytes whole{{}};
  whole.write(input);
  (void)device_code_in(whole);
  return elf.has_value();
}

}  // namespace mlenv::fuzz
