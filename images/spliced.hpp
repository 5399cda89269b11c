#pragma once
// The file that holds a spliced layer: a list of pieces and the literal bytes among them; the other
// bytes are slices of wheels in the store. All numbers little endian:
//
//   magic "mlspl001" · u64 layer size · u32 blobs · u32 pieces · u64 literal bytes
//   blobs × 64 hex digits
//   pieces × (u32 blob number, or 0xFFFFFFFF for a literal · u64 offset · u64 length)
//   literal bytes · 64 hex digits: SHA-256 of all before
#include <functional>
#include <memory>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

struct Spliced;

struct SplicedHeader {
  std::uint64_t size_bytes = 0;  ///< of the layer
  std::uint32_t pieces = 0;
  std::uint64_t literal_bytes = 0;
  std::vector<Digest> blobs;  ///< each wheel once
};

/// Neighbouring pieces that continue each other become one. Throws `bad-layer` when the pieces do
/// not add up to `size_bytes`.
void write_spliced(Sink& out, std::uint64_t size_bytes, const Spliced& spliced);

/// Throws `damaged` when the file is not one.
SplicedHeader read_spliced_header(int fd);

/// The file's own checksum is right.
bool is_spliced_whole(int fd);

/// The layer's bytes from `offset`; `open_blob` gives the wheels' files when they are needed. Reads
/// fill the caller's buffer; memory is bounded by the piece table.
std::unique_ptr<Source> open_spliced(Fd file, std::function<Fd(const Digest&)> open_blob,
                                     std::uint64_t offset);

}  // namespace mlenv
