#pragma once
// Notes of ELF files: who they are for and what they demand. For elf*.cpp alone.
#include "images/inspect/elf.hpp"
#include "images/inspect/elf_layout.hpp"

namespace mlenv {

/// Of one segment or section of notes: the ABI tag and GNU properties.
void take_notes(FileBytes& bytes, const ElfLayout& layout, const ByteRange& range, ElfFile& out);

/// Sections that are known by name: `.note.cuda.fwd_compatibility`.
void take_note_sections(FileBytes& bytes, const ElfLayout& layout, ElfFile& out);

}  // namespace mlenv
