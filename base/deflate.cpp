// LZ77 with lazy matching, one earlier place looked at for each of three lengths, cut into blocks
// where the statistics change. Nothing here depends on floating point, addresses, byte order or
// threads; the tables start empty for each chunk.
#include "base/deflate.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "base/deflate/block.hpp"
#include "base/deflate/matcher.hpp"
#include "base/deflate/symbols.hpp"
#include "base/error.hpp"
#include "base/gzip.hpp"
#include "base/inflate.hpp"

namespace mlenv {
namespace {

using deflate::BitWriter;
using deflate::Histogram;
using deflate::Match;
using deflate::Matcher;
using deflate::Token;

/// A match this long is taken without looking for a better one at the next position.
constexpr std::uint32_t kLongEnough = 32;
/// After so many literals in a row the search takes longer steps, up to the longest.
constexpr std::size_t kPatience = 256;
constexpr std::size_t kLongestStep = 16;
/// Tokens in one piece; a block is a run of pieces with similar statistics.
constexpr std::size_t kPieceTokens = 2048;
constexpr std::size_t kBlockTokens = 65536;
/// What a block's header costs, about, in the unit of `entropy`: 110 bytes in sixteenths of a bit.
constexpr std::uint64_t kHeaderCost = std::uint64_t{110} * 8 * 16;

/// log2(value) in sixteenths of a bit, value > 0.
std::uint32_t log2_sixteenths(std::uint32_t value) {
  // 16 * log2(1 + i/16), rounded.
  static constexpr std::array<std::uint8_t, 16> kFraction{0, 1,  3,  4,  5,  6,  7,  8,
                                                          9, 10, 11, 12, 13, 14, 15, 15};
  const auto whole = static_cast<std::uint32_t>(std::bit_width(value)) - 1;
  const std::uint32_t fraction = whole >= 4 ? value >> (whole - 4) : value << (4 - whole);
  return whole * 16 + kFraction[fraction & 15U];
}

template <std::size_t N>
std::uint64_t entropy(const std::array<std::uint32_t, N>& counts) {
  std::uint32_t total = 0;
  for (const std::uint32_t count : counts) total += count;
  if (total == 0) return 0;
  const std::uint32_t all = log2_sixteenths(total);
  std::uint64_t cost = 0;
  for (const std::uint32_t count : counts) {
    if (count > 0) cost += std::uint64_t{count} * (all - log2_sixteenths(count));
  }
  return cost;
}

std::uint64_t entropy(const Histogram& histogram) {
  return entropy(histogram.litlen) + entropy(histogram.distance);
}

class Encoder {
 public:
  /// Valid until the next call.
  ByteView encode(ByteView chunk);
  /// Inflates `deflated` again; whether that gives `chunk`.
  bool gives(ByteView deflated, ByteView chunk);

 private:
  void start(ByteView chunk);
  void find_tokens(std::size_t size);
  void add(Token token, std::size_t bytes);
  void end_piece();
  void write_block(bool last);

  Matcher matcher_;
  BitWriter out_;
  ByteView rest_;  ///< input that no written block stands for
  std::array<Token, kBlockTokens + kPieceTokens> tokens_{};
  std::size_t block_tokens_ = 0;  ///< of whole pieces
  std::size_t piece_tokens_ = 0;
  std::size_t block_bytes_ = 0;
  std::size_t piece_bytes_ = 0;
  Histogram block_;
  Histogram piece_;
  std::uint64_t block_cost_ = 0;
  Bytes inflated_;
};

void Encoder::write_block(bool last) {
  ++block_.litlen[deflate::kEndOfBlock];
  deflate::write_block(
      out_, {std::span(tokens_).first(block_tokens_), rest_.first(block_bytes_), block_, last});
  rest_ = rest_.subspan(block_bytes_);
  std::copy_n(tokens_.begin() + static_cast<std::ptrdiff_t>(block_tokens_), piece_tokens_,
              tokens_.begin());
  block_tokens_ = 0;
  block_bytes_ = 0;
  block_ = {};
  block_cost_ = 0;
}

void Encoder::end_piece() {
  Histogram both = block_;
  both.add(piece_);
  std::uint64_t cost = entropy(both);
  if (block_tokens_ > 0) {
    const std::uint64_t alone = entropy(piece_);
    if (block_tokens_ + piece_tokens_ > kBlockTokens || block_cost_ + alone + kHeaderCost < cost) {
      write_block(false);
      both = piece_;
      cost = alone;
    }
  }
  block_ = both;
  block_cost_ = cost;
  block_tokens_ += piece_tokens_;
  block_bytes_ += piece_bytes_;
  piece_ = {};
  piece_tokens_ = 0;
  piece_bytes_ = 0;
}

inline void Encoder::add(Token token, std::size_t bytes) {
  tokens_[block_tokens_ + piece_tokens_] = token;
  piece_.count(token);
  ++piece_tokens_;
  piece_bytes_ += bytes;
  if (piece_tokens_ == kPieceTokens) end_piece();
}

/// Whether giving up `now` for `next`, one byte later, saves bits.
bool better(Match next, Match now) {
  if (next.length == 0) return false;
  const int gained = static_cast<int>(next.length) - static_cast<int>(now.length);
  const int nearer = static_cast<int>(std::bit_width(now.distance)) -
                     static_cast<int>(std::bit_width(next.distance));
  return 4 * gained + nearer > 2;
}

void Encoder::start(ByteView chunk) {
  matcher_.start(chunk);
  out_.start();
  rest_ = chunk;
  block_tokens_ = piece_tokens_ = 0;
  block_bytes_ = piece_bytes_ = 0;
  block_ = piece_ = {};
  block_cost_ = 0;
}

void Encoder::find_tokens(std::size_t size) {
  std::size_t literal_run = 0;
  for (std::size_t position = 0; position < size;) {
    Match match = matcher_.find(position);
    if (match.length == 0) {
      // Where nothing matches (images, archives), look at ever fewer positions.
      const std::size_t count = std::min(1 + literal_run / kPatience, kLongestStep);
      const std::size_t end = std::min(position + count, size);
      literal_run += end - position;
      for (; position < end; ++position) add(Token::literal(matcher_.at(position)), 1);
      continue;
    }
    literal_run = 0;
    std::size_t entered = position + 1;
    while (match.length < kLongEnough && entered < size) {
      const Match next = matcher_.find_longer(entered);
      ++entered;
      if (!better(next, match)) break;
      add(Token::literal(matcher_.at(position)), 1);
      ++position;
      match = next;
    }
    add(Token::match(match.length, match.distance), match.length);
    position += match.length;
    matcher_.skip(entered, position);
  }
}

ByteView Encoder::encode(ByteView chunk) {
  start(chunk);
  find_tokens(chunk.size());
  if (piece_tokens_ > 0) end_piece();
  write_block(true);
  return out_.finish();
}

bool Encoder::gives(ByteView deflated, ByteView chunk) {
  inflated_.resize(kChunkBytes);
  const ByteSpan out = ByteSpan(inflated_).first(chunk.size());
  inflate_whole(deflated, out);
  return chunk.empty() || std::memcmp(chunk.data(), out.data(), chunk.size()) == 0;
}

Encoder& thread_encoder() {
  thread_local const std::unique_ptr<Encoder> encoder = std::make_unique<Encoder>();
  return *encoder;
}

/// Valid until the thread's next call.
ByteView encode(ByteView chunk) {
  if (chunk.size() > kChunkBytes)
    throw Error{Kind::internal, "deflate", "a chunk is longer than the encoder takes"};
  return thread_encoder().encode(chunk);
}

ByteView encode_and_read(ByteView chunk) {
  const ByteView deflated = encode(chunk);
  if (!thread_encoder().gives(deflated, chunk))
    throw Error{Kind::internal, "deflate", "the DEFLATE encoder lost bytes"};
  return deflated;
}

Bytes gzip_member(ByteView deflated, ByteView chunk) {
  const Bytes trailer = gzip_trailer(crc32(0, chunk), chunk.size());
  Bytes member;
  member.reserve(gzip_header().size() + deflated.size() + trailer.size());
  member.insert(member.end(), gzip_header().begin(), gzip_header().end());
  member.insert(member.end(), deflated.begin(), deflated.end());
  member.insert(member.end(), trailer.begin(), trailer.end());
  return member;
}

}  // namespace

Bytes deflate_chunk(ByteView chunk) {
  const ByteView deflated = encode_and_read(chunk);
  return {deflated.begin(), deflated.end()};
}

Bytes gzip_chunk(ByteView chunk) { return gzip_member(encode_and_read(chunk), chunk); }

Bytes gzip_chunk_unread(ByteView chunk) { return gzip_member(encode(chunk), chunk); }

}  // namespace mlenv
