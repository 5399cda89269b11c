#pragma once
// The frozen DEFLATE encoder. Its output is part of the layer-format version: the same input gives
// the same bytes for ever, on every machine, whatever compiler built it. Never tune it without a
// new format version. Golden digests in tests/unit/base/deflate_test.cpp hold it still.
#include "base/bytes.hpp"

namespace mlenv {

/// Input is cut into chunks of this many bytes; each is compressed for itself and becomes one gzip
/// member, so that chunks can be made in parallel and the result does not depend on how many were.
inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

/// One chunk (at most kChunkBytes) as a raw deflate stream. The result is inflated again and
/// compared before it is returned.
Bytes deflate_chunk(ByteView chunk);

/// One whole gzip member (header without name or time, OS 255) around `deflate_chunk`.
Bytes gzip_chunk(ByteView chunk);

/// The same without inflating it again, for those who do so before they use it: the member's CRC-32
/// is of `chunk`.
Bytes gzip_chunk_unread(ByteView chunk);

}  // namespace mlenv
