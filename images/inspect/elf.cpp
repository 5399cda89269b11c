#include "images/inspect/elf.hpp"

#include <elf.h>
#include <algorithm>
#include <set>

#include "images/inspect/elf_layout.hpp"
#include "images/inspect/elf_notes.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostTable = std::uint64_t{1} << 20U;
constexpr std::size_t kMostNames = 4096;  // needed libraries, versions

/// The dynamic section's entries that are looked at.
struct Dynamic {
  std::vector<std::uint64_t> needed;
  std::uint64_t strings = 0;  ///< address
  std::optional<std::uint64_t> soname;
  std::optional<std::uint64_t> rpath;
  std::optional<std::uint64_t> runpath;
  std::uint64_t version_needs = 0;
  std::uint64_t version_need_count = 0;
  std::uint64_t versions = 0;
  std::uint64_t version_count = 0;
  std::uint64_t flags_1 = 0;
};

void take_entry(std::uint64_t tag, std::uint64_t value, Dynamic& out) {
  switch (tag) {
    case DT_NEEDED:
      if (out.needed.size() < kMostNames) out.needed.push_back(value);
      break;
    case DT_STRTAB:
      out.strings = value;
      break;
    case DT_SONAME:
      out.soname = value;
      break;
    case DT_RPATH:
      out.rpath = value;
      break;
    case DT_RUNPATH:
      out.runpath = value;
      break;
    case DT_VERNEED:
      out.version_needs = value;
      break;
    case DT_VERNEEDNUM:
      out.version_need_count = value;
      break;
    case DT_VERDEF:
      out.versions = value;
      break;
    case DT_VERDEFNUM:
      out.version_count = value;
      break;
    case DT_FLAGS_1:
      out.flags_1 = value;
      break;
    default:
      break;
  }
}

/// Reads what the tables of one file say.
class Reader {
 public:
  Reader(FileBytes& bytes, const ElfLayout& layout)
      : bytes_(bytes), layout_(layout), segments_(layout.segments(bytes)) {}

  ElfFile file();

 private:
  std::optional<Dynamic> dynamic(const ElfSegment& segment);
  void take_dynamic(const Dynamic& dynamic, ElfFile& out);
  void take_needs(const Dynamic& dynamic, ElfFile& out);
  void take_versions(const Dynamic& dynamic, ElfFile& out);
  std::optional<std::uint64_t> offset_of(std::uint64_t address) const;
  std::string text(std::uint64_t at) const;

  FileBytes& bytes_;
  const ElfLayout& layout_;
  std::vector<ElfSegment> segments_;
  std::optional<std::uint64_t> strings_;
};

std::optional<std::uint64_t> Reader::offset_of(std::uint64_t address) const {
  for (const ElfSegment& one : segments_) {
    if (one.type != PT_LOAD || address < one.address) continue;
    if (address - one.address < one.file_bytes) return one.offset + (address - one.address);
  }
  return std::nullopt;
}

std::string Reader::text(std::uint64_t at) const {
  if (!strings_ || at > bytes_.size()) return {};
  return elf_string(bytes_, *strings_ + at);
}

std::optional<Dynamic> Reader::dynamic(const ElfSegment& segment) {
  const std::size_t half = layout_.is_64() ? 8 : 4;
  const auto table =
      layout_.record(bytes_, {segment.offset, std::min(segment.file_bytes, kMostTable)});
  if (!table) return std::nullopt;
  Dynamic out;
  for (std::size_t at = 0; at + 2 * half <= table->size(); at += 2 * half) {
    const std::uint64_t tag = table->at(at, half);
    if (tag == DT_NULL) break;
    take_entry(tag, table->at(at + half, half), out);
  }
  return out;
}

void Reader::take_needs(const Dynamic& dynamic, ElfFile& out) {
  auto at = offset_of(dynamic.version_needs);
  std::size_t names = 0;
  for (std::uint64_t i = 0; at && i < dynamic.version_need_count && names < kMostNames; ++i) {
    const auto need = layout_.record(bytes_, {*at, sizeof(Elf64_Verneed)});
    if (!need) return;
    VersionNeed one{text(need->at(4, 4)), {}};
    std::uint64_t name_at = *at + need->at(8, 4);
    for (std::uint64_t j = 0; j < need->at(2, 2) && names < kMostNames; ++j, ++names) {
      const auto name = layout_.record(bytes_, {name_at, sizeof(Elf64_Vernaux)});
      if (!name) break;
      const bool is_weak = (name->at(4, 2) & VER_FLG_WEAK) != 0;
      if (!is_weak) one.versions.push_back(text(name->at(8, 4)));
      if (name->at(12, 4) == 0) break;
      name_at += name->at(12, 4);
    }
    std::sort(one.versions.begin(), one.versions.end());
    out.version_needs.push_back(std::move(one));
    ++names;
    if (need->at(12, 4) == 0) return;
    *at += need->at(12, 4);
  }
}

void Reader::take_versions(const Dynamic& dynamic, ElfFile& out) {
  auto at = offset_of(dynamic.versions);
  for (std::uint64_t i = 0; at && i < dynamic.version_count && i < kMostNames; ++i) {
    const auto version = layout_.record(bytes_, {*at, sizeof(Elf64_Verdef)});
    if (!version) break;
    const auto name = layout_.record(bytes_, {*at + version->at(12, 4), sizeof(Elf64_Verdaux)});
    const bool is_base = (version->at(2, 2) & VER_FLG_BASE) != 0;
    if (name && !is_base) out.versions.push_back(text(name->at(0, 4)));
    if (version->at(16, 4) == 0) break;
    *at += version->at(16, 4);
  }
  std::sort(out.versions.begin(), out.versions.end());
}

void Reader::take_dynamic(const Dynamic& dynamic, ElfFile& out) {
  strings_ = offset_of(dynamic.strings);
  for (const std::uint64_t name : dynamic.needed) out.needed.push_back(text(name));
  std::erase(out.needed, "");
  if (dynamic.soname) out.soname = text(*dynamic.soname);
  if (dynamic.rpath) out.rpath = text(*dynamic.rpath);
  if (dynamic.runpath) out.runpath = text(*dynamic.runpath);
  out.no_default_folders = (dynamic.flags_1 & DF_1_NODEFLIB) != 0;
  take_needs(dynamic, out);
  take_versions(dynamic, out);
}

ElfFile Reader::file() {
  ElfFile out;
  out.machine = layout_.machine();
  out.bits = layout_.is_64() ? 64 : 32;
  out.is_little_endian = layout_.is_little();
  for (const ElfSegment& segment : segments_) {
    if (segment.type == PT_INTERP) out.interpreter = elf_string(bytes_, segment.offset);
    if (segment.type == PT_DYNAMIC && !out.is_dynamic) {
      if (const auto found = dynamic(segment)) {
        out.is_dynamic = true;
        take_dynamic(*found, out);
      }
    }
    if (segment.type == PT_NOTE) {
      take_notes(bytes_, layout_, {segment.offset, segment.file_bytes}, out);
    }
  }
  take_note_sections(bytes_, layout_, out);
  return out;
}

bool is_fatbin_section(const std::string& name) {
  return name == ".nv_fatbin" || name == "__nv_relfatbin";
}

bool is_in_one(const FatbinRun& run, const std::vector<ByteRange>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const ByteRange& range) {
    return run.begin >= range.offset ? run.begin - range.offset < range.size
                                     : run.end > range.offset;
  });
}

}  // namespace

std::optional<ElfFile> read_elf(FileBytes& bytes) {
  const auto layout = ElfLayout::read(bytes);
  if (!layout || (layout->type() != ET_EXEC && layout->type() != ET_DYN)) return std::nullopt;
  return Reader{bytes, *layout}.file();
}

std::optional<std::vector<ByteRange>> fatbin_sections(FileBytes& bytes) {
  const auto layout = ElfLayout::read(bytes);
  if (!layout) return std::nullopt;
  const auto all = layout->named_sections(bytes);
  if (!all) return std::nullopt;
  std::vector<ByteRange> found;
  for (const ElfLayout::NamedSection& one : *all) {
    if (is_fatbin_section(one.name)) found.push_back(one.section.range);
  }
  return found;
}

std::vector<ByteRange> elf_tables(ByteView head) {
  PassingBytes bytes{{}};
  bytes.write(head);
  const auto layout = ElfLayout::read(bytes);
  if (!layout) return {};
  std::vector<ByteRange> ranges = {layout->segment_table(), layout->section_table()};
  for (const ElfSegment& segment : layout->segments(bytes)) {
    const bool is_read =
        segment.type == PT_INTERP || segment.type == PT_DYNAMIC || segment.type == PT_NOTE;
    if (is_read) ranges.push_back({segment.offset, std::min(segment.file_bytes, kMostTable)});
  }
  return ranges;
}

std::vector<std::string> device_code_of(const std::vector<FatbinRun>& runs,
                                        const std::optional<std::vector<ByteRange>>& sections) {
  std::set<DeviceCode> all;
  for (const FatbinRun& run : runs) {
    if (sections && !is_in_one(run, *sections)) continue;
    all.insert(run.code.begin(), run.code.end());
  }
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const DeviceCode& code : all) names.push_back(code.name());
  return names;
}

std::vector<std::string> device_code_in(FileBytes& bytes) {
  constexpr std::size_t kStep = 4096;
  const auto sections = fatbin_sections(bytes);
  if (!sections) return {};
  std::vector<FatbinRun> runs;
  Bytes buffer(kStep);
  for (const ByteRange& section : *sections) {
    if (section.offset > bytes.size()) continue;
    FatbinScanner scanner;
    std::uint64_t left = std::min(section.size, bytes.size() - section.offset);
    while (left > 0) {
      const std::uint64_t skip = std::min(scanner.unneeded(), left);
      scanner.pass_over(skip);
      left -= skip;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, kStep));
      const ByteSpan part = std::span(buffer).first(count);
      const std::uint64_t end = std::min(section.size, bytes.size() - section.offset);
      if (count > 0 && !bytes.read(section.offset + end - left, part)) break;
      scanner.write(part);
      left -= count;
    }
    runs.push_back({section.offset, section.offset, scanner.found()});
  }
  return device_code_of(runs, std::nullopt);
}

}  // namespace mlenv
