#pragma once
// Writes zip files, also those that nobody should: every field can be changed before it is written.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace mlenv::test {

struct ZipHeader {
  std::string name;
  std::uint16_t made_by = 3U << 8U;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint32_t compressed_bytes = 0;
  std::uint32_t size_bytes = 0;
  std::string extra;
  std::uint32_t attributes = 0100644U << 16U;  ///< directory only
  std::uint32_t offset = 0;                    ///< directory only
};

class ZipBuilder {
 public:
  /// Adds a stored or deflated member; both headers say the same unless `change_local` or
  /// `change_central` alter theirs.
  using Change = std::function<void(ZipHeader&)>;
  void add(const std::string& name, const std::string& content, bool deflated = false,
           const Change& change_local = {}, const Change& change_central = {});
  /// Appends raw bytes to the members' part.
  void append(const std::string& bytes) { body_ += bytes; }
  /// The whole file.
  std::string finish(const std::string& comment = {}, int extra_members = 0,
                     bool zip64 = false) const;

 private:
  std::string body_;
  std::vector<ZipHeader> directory_;
};

std::string little_endian(std::uint64_t value, unsigned bytes);

}  // namespace mlenv::test
