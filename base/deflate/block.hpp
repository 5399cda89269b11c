#pragma once
// Writes DEFLATE blocks (RFC 1951 §3.2): each in the smallest of the three forms.
#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.hpp"
#include "base/deflate/symbols.hpp"

namespace mlenv::deflate {

/// Least significant bit first (RFC 1951 §3.1.1). The caller says beforehand how much room is
/// needed. The buffer is kept from one stream to the next.
class BitWriter {
 public:
  /// Starts a stream, forgetting the last one.
  void start();
  /// Makes room for that many more bytes.
  void reserve(std::size_t more_bytes);
  /// Appends the low `count` bits of `bits` (the others are 0). At most 56 bits between flushes.
  void put(std::uint64_t bits, unsigned count) {
    hold_ |= bits << held_;
    held_ += count;
  }
  void flush();
  void align();
  /// Appends whole bytes; only when aligned.
  void append(ByteView data);
  unsigned held_bits() const { return held_; }
  /// Ends the stream and gives its bytes, valid until the next start.
  ByteView finish();

 private:
  static constexpr std::size_t kSlack = 16;
  Bytes out_;
  std::size_t size_ = 0;
  std::uint64_t hold_ = 0;
  unsigned held_ = 0;
};

struct Block {
  std::span<const Token> tokens;
  ByteView raw;                ///< the input bytes that the tokens stand for
  const Histogram& histogram;  ///< of the tokens and one end-of-block
  bool last = false;
};

/// Appends `block` as stored, fixed or dynamic, whichever is smallest (in this order when equal).
void write_block(BitWriter& out, const Block& block);

}  // namespace mlenv::deflate
