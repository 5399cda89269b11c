#pragma once
// Makes a layer in one pass: its gzip bytes as slices, their digest, the tar's digest (diff-id),
// and the unpacked tree.
//
// A wheel member is a raw DEFLATE stream with a CRC-32 and a size: the body and trailer of a gzip
// member (RFC 1952 §2.3). So the layer is spliced: members of stored blocks hold tar headers and
// padding, and between them stand the wheel's own streams, untouched. Nothing is compressed again,
// and the bytes depend on no compressor.
#include <map>
#include <set>
#include <string>

#include "base/hash_exchange.hpp"
#include "base/tar.hpp"
#include "base/zip.hpp"
#include "images/oci.hpp"
#include "images/store.hpp"
#include "images/tree_writer.hpp"

namespace mlenv {

/// A finished layer: what it is, and how its blob is put together.
struct MadeLayer {
  Layer layer;
  Spliced spliced;
};

class LayerWriter {
 public:
  /// Every entry gets time `mtime` and owner 0:0. `tree` may be null: then nothing is unpacked.
  /// Writers that work at the same time hash faster on one exchange.
  LayerWriter(TreeWriter* tree, std::int64_t mtime, HashExchange& exchange);

  /// Missing parents are added first, mode 0755. A folder already there is left as it is.
  void add_folder(const std::string& path);
  /// One that hides what lower layers have below it (image-spec layer.md, "Opaque Whiteout").
  void add_opaque_folder(const std::string& path);
  void add_text(const std::string& path, std::uint32_t mode, std::string_view text);
  void add_symlink(const std::string& path, const std::string& target);
  /// Inflates the member once, checking its CRC and size (`bad-wheel`).
  void add_member(const std::string& path, std::uint32_t mode, const ZipMember& member,
                  int wheel_fd, const Digest& wheel);
  /// Gzip members of at most `kChunkBytes` each (base/deflate.hpp) that are already a blob of the
  /// store, whose bytes `compressed` gives, and hold whole tar entries. Each is inflated, its
  /// CRC-32 checked (`bad-gzip`). Returns how many tar bytes they held.
  std::uint64_t add_segment(const Digest& blob, std::uint64_t size_bytes, Source& compressed);

  /// Ends the archive; the tree is finished but not published.
  MadeLayer finish(std::string title);

 private:
  class RawTap;
  class SegmentTar;
  void add_parents(const std::string& path);
  void header(const TarEntry& entry);
  void glue(ByteView bytes);  ///< tar bytes that will go into a stored member
  void flush();
  void literal(ByteView bytes);  ///< compressed bytes
  void slice(const Digest& blob, std::uint64_t offset, std::uint64_t length);
  void raw_bytes(ByteView bytes);  ///< passes the blob's bytes by its hash
  void raw_later(ByteView bytes);  ///< the same, in step with `content`; until `raw_rest`
  void raw_rest();
  void inflate_member(const ZipMember& member, int wheel_fd);
  void stream_member(const ZipMember& member, int wheel_fd);
  void stored_member(const ZipMember& member, int wheel_fd, const Digest& wheel);
  void content(ByteView bytes, std::uint32_t& crc);
  void tar_bytes(ByteView bytes);                 ///< passes the tar's bytes by its hash
  void both_bytes(ByteView raw, ByteView bytes);  ///< of the blob and of the tar, in step

  TreeWriter* tree_;
  std::int64_t mtime_;
  std::set<std::string, std::less<>> folders_;
  Bytes glue_;
  Sha256State raw_hash_;  ///< of the blob
  std::uint64_t raw_size_bytes_ = 0;
  HashExchange::Stream tar_hash_;
  std::uint64_t tar_size_bytes_ = 0;
  ByteView raw_rest_;  ///< of the blob, not hashed yet
  Spliced spliced_;
  Bytes raw_;
  Bytes inflated_;
};

}  // namespace mlenv
