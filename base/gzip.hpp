#pragma once
// Gzip members made without a compressor (RFC 1952, RFC 1951 §3.2.4): the glue of spliced layers.
#include "base/bytes.hpp"

namespace mlenv {

/// The 10 header bytes of every member we write: deflate, no flags, mtime 0, XFL 0, OS 255.
ByteView gzip_header();
/// The 8 trailer bytes: CRC-32 and size modulo 2^32, little endian.
Bytes gzip_trailer(std::uint32_t crc, std::uint64_t size_bytes);
/// A complete member that holds `data` in stored blocks of at most 65,535 bytes. Never empty: no
/// data gives one empty stored block.
Bytes gzip_stored(ByteView data);
/// Appends the stored blocks alone (no header, no trailer), the last one marked final.
void append_stored_blocks(Bytes& out, ByteView data);

}  // namespace mlenv
