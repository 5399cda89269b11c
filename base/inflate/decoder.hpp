#pragma once
// A DEFLATE stream (RFC 1951) of any length, decoded as it comes, in constant memory. It accepts
// what zlib accepts.
//
// Most of a wheel's bytes are in members of hundreds of megabytes, which no decoder for whole
// buffers can take, and ISA-L's for streams needs a quarter more time than this one
// (docs/decisions.md).
#include <array>
#include <cstdint>

#include "base/bytes.hpp"
#include "base/inflate/table.hpp"

namespace mlenv::inflate {

class Decoder {
 public:
  explicit Decoder(Source& in);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() = default;

  enum class State { going, finished, malformed, truncated };
  struct Part {
    ByteView bytes;  ///< valid until the next call
    State state = State::going;
  };
  /// What the input read so far gives, at most 256 KiB; reads more of it once that is used up, so
  /// that each piece of input is followed by what comes from it. After `going` it may be empty.
  Part next();
  /// Once finished: whether bytes follow the stream.
  bool followed();

 private:
  enum class Block { header, stored, coded, done };

  void slide();
  void fill(std::size_t bytes);
  std::size_t input_left() const { return static_cast<std::size_t>(in_end_ - in_); }
  void load();
  void take(unsigned count);
  std::uint64_t take_value(unsigned count);
  bool overran() const;
  State read_header();
  State read_stored_header();
  bool read_code();
  bool read_lengths(std::span<std::uint8_t> lengths);
  void use_fixed_code();
  State copy_stored();
  State decode();
  State decode_symbols();
  State decode_anywhere();
  State decode_with_bmi2();

  Source& source_;
  Bytes input_;
  const std::uint8_t* in_ = nullptr;
  const std::uint8_t* in_end_ = nullptr;  ///< behind it zeros, as long as the longest step needs
  bool in_over_ = false;                  ///< the source has no more
  std::uint64_t bits_ = 0;  ///< the next ones lowest; above `count_` as the input has them, or 0
  unsigned count_ = 0;

  Bytes window_;
  std::uint8_t* out_ = nullptr;
  std::uint8_t* out_begin_ = nullptr;  ///< of what `next` will give
  std::uint8_t* out_limit_ = nullptr;

  Block block_ = Block::header;
  bool last_block_ = false;
  bool fixed_ = false;  ///< the tables are those of the fixed code
  std::size_t stored_left_ = 0;
  std::array<Entry, kLitLenRoom> litlen_{};
  std::array<Entry, kDistanceRoom> distance_{};
};

}  // namespace mlenv::inflate
