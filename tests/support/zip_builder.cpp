#include "tests/support/zip_builder.hpp"

#include "base/inflate.hpp"
#include "tests/support/raw_deflate.hpp"

namespace mlenv::test {

std::string little_endian(std::uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

namespace {

std::string common_part(const ZipHeader& header) {
  return little_endian(header.flags, 2) + little_endian(header.method, 2) + little_endian(0, 4) +
         little_endian(header.crc, 4) + little_endian(header.compressed_bytes, 4) +
         little_endian(header.size_bytes, 4) + little_endian(header.name.size(), 2) +
         little_endian(header.extra.size(), 2);
}

}  // namespace

void ZipBuilder::add(const std::string& name, const std::string& content, bool deflated,
                     const Change& change_local, const Change& change_central) {
  const std::string data = deflated ? zlib_deflate(content, 6) : content;
  ZipHeader central;
  central.name = name;
  central.method = deflated ? 8 : 0;
  central.crc = crc32(0, as_bytes(content));
  central.compressed_bytes = static_cast<std::uint32_t>(data.size());
  central.size_bytes = static_cast<std::uint32_t>(content.size());
  central.offset = static_cast<std::uint32_t>(body_.size());
  ZipHeader local = central;
  if (change_local) change_local(local);
  if (change_central) change_central(central);
  body_ += "PK\3\4" + little_endian(20, 2) + common_part(local) + local.name + local.extra + data;
  directory_.push_back(central);
}

std::string ZipBuilder::finish(const std::string& comment, int extra_members, bool zip64) const {
  std::string directory;
  for (const ZipHeader& header : directory_) {
    directory += "PK\1\2" + little_endian(header.made_by, 2) + little_endian(20, 2) +
                 common_part(header) + little_endian(0, 6) + little_endian(header.attributes, 4) +
                 little_endian(header.offset, 4) + header.name + header.extra;
  }
  const std::uint64_t members = directory_.size() + static_cast<std::uint64_t>(extra_members);
  const std::string where =
      little_endian(directory.size(), zip64 ? 8 : 4) + little_endian(body_.size(), zip64 ? 8 : 4);
  std::string file = body_ + directory;
  if (zip64) {
    const std::uint64_t end64 = file.size();
    file += "PK\6\6" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) +
            little_endian(0, 8) + little_endian(members, 8) + little_endian(members, 8) + where;
    file += "PK\6\7" + little_endian(0, 4) + little_endian(end64, 8) + little_endian(1, 4);
    return file + "PK\5\6" + little_endian(0, 4) + std::string(12, '\xFF') +
           little_endian(comment.size(), 2) + comment;
  }
  return file + "PK\5\6" + little_endian(0, 4) + little_endian(members, 2) +
         little_endian(members, 2) + where + little_endian(comment.size(), 2) + comment;
}

}  // namespace mlenv::test
