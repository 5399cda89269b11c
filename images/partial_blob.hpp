#pragma once
// A blob that comes in pieces, in any order and from several places, and outlives the process that
// fetched half of it.
//
//   partial/HEX        the bytes, each piece at its place
//   partial/HEX.have   the boot in which they were written, the blob's size, and a digit for each
//                      piece: 1 once all of it was written
//
// Only the whole is proven, by its digest, before it is a blob of the store. What another boot
// wrote may not have reached the disk, and is fetched again.
#include <memory>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "base/files.hpp"

namespace mlenv {

class StoreFolder;

/// How blobs are cut: the last piece may be shorter, an empty blob has none.
inline constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20U;
std::size_t piece_count(std::uint64_t size_bytes);

class PartialBlob {
 public:
  /// Store::partial makes them.
  PartialBlob(StoreFolder& folder, Digest digest, std::uint64_t size_bytes);
  PartialBlob(const PartialBlob&) = delete;
  PartialBlob& operator=(const PartialBlob&) = delete;
  /// What is there stays for the next one, where nobody else had it open.
  ~PartialBlob();

  std::uint64_t size_bytes() const { return size_; }
  std::size_t pieces() const { return have_.size(); }
  bool has(std::size_t piece) const { return have_[piece]; }
  bool whole() const { return missing_ == 0; }
  /// For reading pieces that are there.
  int fd() const { return fd_.get(); }

  /// Within a piece that is not there yet. Throws `no-space` and its kin.
  void write(std::uint64_t offset, ByteView bytes);
  /// All bytes of the piece were written.
  void mark(std::size_t piece);

  /// Hashes pieces that are there, from the first on, at most so many bytes. True: there are more.
  bool hash_some(std::uint64_t most_bytes);
  /// Of one that is whole: makes it a blob of the store, hashing what is not hashed yet. Throws
  /// `digest-mismatch`; nothing of it is kept then.
  void commit();
  /// Nothing of it is kept.
  void discard();

 private:
  bool open_kept();
  void load_pieces();

  StoreFolder& folder_;
  Digest digest_;
  std::uint64_t size_;
  fs::path path_;  ///< empty: it is a blob now, or gone
  Fd fd_;
  Fd have_file_;  ///< none: not kept
  std::vector<bool> have_;
  std::size_t missing_ = 0;
  std::unique_ptr<Sha256> hash_;
  std::uint64_t hashed_ = 0;
};

/// Takes away what nobody went on with for a week.
void sweep_partial_blobs(const fs::path& folder);

}  // namespace mlenv
