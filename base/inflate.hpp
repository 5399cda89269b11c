#pragma once
// Reading DEFLATE (RFC 1951) and gzip (RFC 1952): libdeflate where the whole member fits in memory,
// inflate/decoder.hpp where a wheel's must be streamed, ISA-L for gzip files.
#include "base/bytes.hpp"

namespace mlenv {

/// Members whose inflated size is at most this are inflated in one call; larger ones are streamed.
inline constexpr std::uint64_t kWholeInflateLimit = std::uint64_t{16} << 20;

/// Inflates a raw deflate stream of exactly `out.size()` bytes into `out`. Throws `bad-deflate`
/// when the stream is malformed, ends early, or holds more or fewer bytes. Reuses a per-thread
/// state.
void inflate_whole(ByteView deflated, ByteSpan out);

/// How much of its input and its output a call used.
struct InflatedPart {
  std::size_t used = 0;
  std::size_t written = 0;
};

/// Inflates the gzip member that `data` starts with, checking its CRC-32 and ISIZE. Throws
/// `bad-gzip` when it is damaged, not all there, or does not fit into `out`.
InflatedPart gunzip_member(ByteView data, ByteSpan out);

/// Streams a raw deflate stream to `out` in chunks of at most 256 KiB. Throws `bad-deflate` when it
/// is malformed, truncated, followed by other bytes within `in`, or longer than `size_bytes`.
void inflate_stream(Source& in, Sink& out, std::uint64_t size_bytes);

/// Streams a gzip file (any number of members) to `out`, checking each member's CRC-32 and ISIZE.
/// Throws `bad-gzip`, also for an empty file and for anything behind the last member, padding
/// included. Constant memory.
void gunzip(Source& in, Sink& out);

/// The same for any of gzip, zstd, xz or no compression, told by magic number. Throws `bad-gzip`,
/// `bad-zstd` or `bad-xz`; what `in` and `out` throw passes through.
void decompress(Source& in, Sink& out);

/// Streams a bzip2 file to `out`. Throws `bad-bzip2`.
void unbzip2(Source& in, Sink& out);

/// CRC-32 as gzip and zip use it; start with 0, continue with the last result.
std::uint32_t crc32(std::uint32_t crc, ByteView data);

}  // namespace mlenv
