#include "images/inspect/elf_layout.hpp"

#include <algorithm>
#include <array>

#include "images/inspect/elf.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostSegments = 512;
constexpr std::size_t kMostSections = 1024;  // libraries have 30 to 50
constexpr std::uint64_t kLargestName = 4096;
constexpr std::uint64_t kLargestEntry = 256;  // of a table; 64 are usual

/// Of the header fields that differ between the classes: offset and width.
struct Field {
  std::size_t offset;
  std::size_t width;
};
struct HeaderFields {
  std::size_t bytes;
  Field segments;
  Field sections;
  std::size_t entries;  ///< of e_phentsize; e_phnum, e_shentsize, e_shnum, e_shstrndx follow
};
constexpr HeaderFields kHeader64 = {64, {32, 8}, {40, 8}, 54};
constexpr HeaderFields kHeader32 = {52, {28, 4}, {32, 4}, 42};

}  // namespace

std::uint64_t ElfRecord::at(std::size_t offset, std::size_t width) const {
  if (offset > bytes_.size() || width > bytes_.size() - offset) return 0;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t from = little_ ? width - 1 - i : i;
    value = value << 8U | std::to_integer<std::uint64_t>(bytes_[offset + from]);
  }
  return value;
}

std::optional<ElfRecord> ElfLayout::record(FileBytes& bytes, const ByteRange& range) const {
  if (range.offset > bytes.size() || range.size > bytes.size() - range.offset) return std::nullopt;
  Bytes content(range.size);
  if (!bytes.read(range.offset, content)) return std::nullopt;
  return ElfRecord{std::move(content), little_};
}

std::optional<ElfLayout> ElfLayout::read(FileBytes& bytes) {
  std::array<std::byte, 16> ident{};
  if (!bytes.read(0, ident) || as_text(ident).substr(0, kElfMagic.size()) != kElfMagic) {
    return std::nullopt;
  }
  const auto bits = std::to_integer<int>(ident[4]);
  const auto order = std::to_integer<int>(ident[5]);
  if (bits < 1 || bits > 2 || order < 1 || order > 2) return std::nullopt;
  ElfLayout layout;
  layout.is_64_ = bits == 2;
  layout.little_ = order == 1;
  const HeaderFields& fields = layout.is_64_ ? kHeader64 : kHeader32;
  const auto header = layout.record(bytes, {0, fields.bytes});
  if (!header) return std::nullopt;
  layout.type_ = header->at(16, 2);
  layout.machine_ = header->at(18, 2);
  layout.segment_bytes_ = header->at(fields.entries, 2);
  if (layout.segment_bytes_ > kLargestEntry) layout.segment_bytes_ = 0;
  const std::uint64_t segments = std::min(header->at(fields.entries + 2, 2), kMostSegments);
  layout.segments_ = {header->at(fields.segments.offset, fields.segments.width),
                      layout.segment_bytes_ * segments};
  layout.section_bytes_ = header->at(fields.entries + 4, 2);
  if (layout.section_bytes_ > kLargestEntry) layout.section_bytes_ = 0;
  const std::uint64_t sections = header->at(fields.entries + 6, 2);
  layout.sections_ = {header->at(fields.sections.offset, fields.sections.width),
                      layout.section_bytes_ * sections};
  layout.names_ = header->at(fields.entries + 8, 2);
  return layout;
}

std::vector<ElfSegment> ElfLayout::segments(FileBytes& bytes) const {
  std::vector<ElfSegment> found;
  const std::size_t least = is_64_ ? 56 : 32;
  if (segment_bytes_ < least) return found;
  const auto table = record(bytes, segments_);
  if (!table) return found;
  for (std::size_t at = 0; at + least <= table->size(); at += segment_bytes_) {
    if (is_64_) {
      found.push_back(
          {table->at(at, 4), table->at(at + 8, 8), table->at(at + 16, 8), table->at(at + 32, 8)});
    } else {
      found.push_back(
          {table->at(at, 4), table->at(at + 4, 4), table->at(at + 8, 4), table->at(at + 16, 4)});
    }
  }
  return found;
}

std::optional<std::vector<Section>> ElfLayout::sections(FileBytes& bytes) const {
  const std::size_t least = is_64_ ? 64 : 40;
  if (section_bytes_ < least || sections_.size == 0 || sections_.offset == 0) return std::nullopt;
  const auto table = record(bytes, sections_);
  if (!table) return std::nullopt;
  std::vector<Section> found;
  for (std::size_t at = 0; at + least <= table->size(); at += section_bytes_) {
    if (is_64_) {
      found.push_back(
          {table->at(at, 4), table->at(at + 4, 4), {table->at(at + 24, 8), table->at(at + 32, 8)}});
    } else {
      found.push_back(
          {table->at(at, 4), table->at(at + 4, 4), {table->at(at + 16, 4), table->at(at + 20, 4)}});
    }
  }
  return found;
}

std::optional<std::vector<ElfLayout::NamedSection>> ElfLayout::named_sections(
    FileBytes& bytes) const {
  const auto all = sections(bytes);
  if (!all || names_ >= all->size()) return std::nullopt;
  const ByteRange& names = (*all)[names_].range;
  std::vector<NamedSection> found;
  for (const Section& section : *all) {
    if (section.name >= names.size || found.size() == kMostSections) continue;
    found.push_back({elf_string(bytes, names.offset + section.name), section});
  }
  return found;
}

std::string elf_string(FileBytes& bytes, std::uint64_t offset) {
  constexpr std::size_t kPart = 64;
  std::string text;
  while (text.size() < kLargestName && offset < bytes.size()) {
    std::array<std::byte, kPart> part{};
    const auto count =
        static_cast<std::size_t>(std::min<std::uint64_t>(kPart, bytes.size() - offset));
    if (!bytes.read(offset, std::span(part).first(count))) return {};
    const std::string_view read = as_text(part).substr(0, count);
    const std::size_t end = read.find('\0');
    text.append(read.substr(0, end));
    if (end != std::string_view::npos) return text;
    offset += count;
  }
  return {};
}

}  // namespace mlenv
