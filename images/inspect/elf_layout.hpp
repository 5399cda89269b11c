#pragma once
// Numbers in an ELF file, in its own byte order and width. For elf*.cpp alone.
#include <optional>
#include <string>
#include <vector>

#include "images/inspect/file_bytes.hpp"

namespace mlenv {

/// A record that was read: fields by their offset.
class ElfRecord {
 public:
  ElfRecord(Bytes bytes, bool little) : bytes_(std::move(bytes)), little_(little) {}
  std::size_t size() const { return bytes_.size(); }
  /// 0 where it lies outside.
  std::uint64_t at(std::size_t offset, std::size_t width) const;

 private:
  Bytes bytes_;
  bool little_;
};

struct ElfSegment {
  std::uint64_t type = 0;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint64_t file_bytes = 0;
};

struct Section {
  std::uint64_t name = 0;  ///< offset in the names' section
  std::uint64_t type = 0;
  ByteRange range;
};

/// The file header, and the tables that it points to.
class ElfLayout {
 public:
  /// nullopt for what is no ELF file of a kind that is known.
  static std::optional<ElfLayout> read(FileBytes& bytes);

  std::uint64_t type() const { return type_; }
  std::uint64_t machine() const { return machine_; }
  bool is_64() const { return is_64_; }
  bool is_little() const { return little_; }
  const ByteRange& segment_table() const { return segments_; }
  const ByteRange& section_table() const { return sections_; }

  std::vector<ElfSegment> segments(FileBytes& bytes) const;
  /// nullopt: it has none, or they are not at hand.
  std::optional<std::vector<Section>> sections(FileBytes& bytes) const;
  /// With names.
  struct NamedSection {
    std::string name;
    Section section;
  };
  std::optional<std::vector<NamedSection>> named_sections(FileBytes& bytes) const;

  std::optional<ElfRecord> record(FileBytes& bytes, const ByteRange& range) const;

 private:
  bool is_64_ = true;
  bool little_ = true;
  std::uint64_t type_ = 0;
  std::uint64_t machine_ = 0;
  ByteRange segments_;
  std::uint64_t segment_bytes_ = 0;
  ByteRange sections_;
  std::uint64_t section_bytes_ = 0;
  std::uint64_t names_ = 0;  ///< number of the names' section
};

/// Up to its NUL; empty where it lies outside or is longer than a path can be.
std::string elf_string(FileBytes& bytes, std::uint64_t offset);

}  // namespace mlenv
