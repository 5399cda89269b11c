#include "images/inspect/elf_notes.hpp"

#include <elf.h>
#include <algorithm>

#include <fmt/core.h>

namespace mlenv {
namespace {

constexpr std::uint64_t kMostNotes = std::uint64_t{64} << 10U;
constexpr std::size_t kNoteHeader = 12;
constexpr std::string_view kForward = ".note.cuda.fwd_compatibility";

/// Type of a GNU property note, and the property that says which instructions are needed (x86-64
/// psABI, "Linux Extensions"): a bit for each of x86-64-v1 … v4.
constexpr std::uint64_t kGnuProperties = 5;
constexpr std::uint64_t kNeededIsa = 0xC0008002;

std::size_t padded(std::size_t size, std::size_t to) { return (size + to - 1) / to * to; }

void take_properties(const ElfRecord& notes, std::size_t at, std::size_t end, bool is_64,
                     ElfFile& out) {
  constexpr std::size_t kHeader = 8;
  while (at + kHeader <= end) {
    const std::uint64_t type = notes.at(at, 4);
    const std::uint64_t bytes = notes.at(at + 4, 4);
    if (bytes > end - at - kHeader) return;
    if (type == kNeededIsa) {
      const std::uint64_t bits = notes.at(at + kHeader, 4);
      for (std::uint64_t level = 1; level <= 4; ++level) {
        if ((bits >> (level - 1) & 1U) != 0) out.x86_level = std::max(out.x86_level, level);
      }
    }
    at += padded(kHeader + static_cast<std::size_t>(bytes), is_64 ? 8 : 4);
  }
}

}  // namespace

void take_notes(FileBytes& bytes, const ElfLayout& layout, const ByteRange& range, ElfFile& out) {
  const auto notes = layout.record(bytes, {range.offset, std::min(range.size, kMostNotes)});
  if (!notes) return;
  std::size_t at = 0;
  while (at + kNoteHeader <= notes->size()) {
    const auto name_bytes = static_cast<std::size_t>(notes->at(at, 4));
    const auto bytes_of_it = static_cast<std::size_t>(notes->at(at + 4, 4));
    const std::uint64_t type = notes->at(at + 8, 4);
    const bool is_gnu = name_bytes == 4 && notes->at(at + kNoteHeader, 1) == 'G' &&
                        notes->at(at + kNoteHeader + 1, 1) == 'N';
    const std::size_t begin = at + kNoteHeader + padded(name_bytes, 4);
    if (begin > notes->size() || bytes_of_it > notes->size() - begin) return;
    if (is_gnu && type == NT_GNU_ABI_TAG && bytes_of_it >= 16 && notes->at(begin, 4) == 0) {
      out.least_kernel = fmt::format("{}.{}.{}", notes->at(begin + 4, 4), notes->at(begin + 8, 4),
                                     notes->at(begin + 12, 4));
    }
    const bool aligned_8 = is_gnu && type == kGnuProperties && layout.is_64();
    if (is_gnu && type == kGnuProperties && layout.machine() == EM_X86_64) {
      take_properties(*notes, begin, begin + bytes_of_it, layout.is_64(), out);
    }
    at = begin + padded(bytes_of_it, aligned_8 ? 8 : 4);
  }
}

void take_note_sections(FileBytes& bytes, const ElfLayout& layout, ElfFile& out) {
  const auto sections = layout.named_sections(bytes);
  if (!sections) return;
  for (const ElfLayout::NamedSection& one : *sections) {
    if (one.name != kForward || one.section.range.size > kMostNotes) continue;
    if (one.section.range.size > bytes.size()) continue;
    Bytes content(one.section.range.size);
    if (!bytes.read(one.section.range.offset, content)) continue;
    const std::string_view text = as_text(content);
    const std::size_t begin = text.find('{');
    const std::size_t end = text.rfind('}');
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) continue;
    out.forward_compatibility = text.substr(begin, end - begin + 1);
  }
}

}  // namespace mlenv
