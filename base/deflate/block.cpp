#include "base/deflate/block.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/deflate/code.hpp"

namespace mlenv::deflate {
namespace {

constexpr unsigned kCodeLimit = 15;
constexpr unsigned kCodeLengthLimit = 7;

/// Code lengths of both alphabets. The fixed code has two more literal symbols than can occur.
struct Lengths {
  std::array<std::uint8_t, kLitLenSymbols + 2> litlen{};
  std::array<std::uint8_t, kDistanceSymbols + 2> distance{};
};

Lengths fixed_lengths() {
  Lengths lengths;
  std::fill_n(lengths.litlen.begin(), 144, std::uint8_t{8});
  std::fill_n(lengths.litlen.begin() + 144, 112, std::uint8_t{9});
  std::fill_n(lengths.litlen.begin() + 256, 24, std::uint8_t{7});
  std::fill_n(lengths.litlen.begin() + 280, 8, std::uint8_t{8});
  lengths.distance.fill(5);
  return lengths;
}

Lengths dynamic_lengths(const Histogram& histogram) {
  Lengths lengths;
  code_lengths(histogram.litlen, kCodeLimit, std::span(lengths.litlen).first(kLitLenSymbols));
  code_lengths(histogram.distance, kCodeLimit, std::span(lengths.distance).first(kDistanceSymbols));
  return lengths;
}

/// Bits of the block's symbols and their extra bits under `lengths`.
std::uint64_t body_bits(const Histogram& histogram, const Lengths& lengths) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < kLitLenSymbols; ++i) {
    const unsigned extra = i > kEndOfBlock ? kLengthSlots[i - kEndOfBlock - 1].extra_bits : 0U;
    bits += std::uint64_t{histogram.litlen[i]} * (lengths.litlen[i] + extra);
  }
  for (std::size_t i = 0; i < kDistanceSymbols; ++i) {
    bits += std::uint64_t{histogram.distance[i]} *
            (lengths.distance[i] + std::uint32_t{kDistanceSlots[i].extra_bits});
  }
  return bits;
}

/// The code lengths themselves, run-length coded (RFC 1951 §3.2.7).
class DynamicHeader {
 public:
  explicit DynamicHeader(const Lengths& lengths) {
    litlen_count_ = kLitLenSymbols;
    while (litlen_count_ > 257 && lengths.litlen[litlen_count_ - 1] == 0) --litlen_count_;
    distance_count_ = kDistanceSymbols;
    while (distance_count_ > 1 && lengths.distance[distance_count_ - 1] == 0) --distance_count_;
    std::array<std::uint8_t, kLitLenSymbols + kDistanceSymbols> all{};
    std::copy_n(lengths.litlen.begin(), litlen_count_, all.begin());
    std::copy_n(lengths.distance.begin(), distance_count_,
                all.begin() + static_cast<std::ptrdiff_t>(litlen_count_));
    encode(std::span(all).first(litlen_count_ + distance_count_));
    std::array<std::uint32_t, kCodeLengthSymbols> frequencies{};
    for (std::size_t i = 0; i < item_count_; ++i) ++frequencies[items_[i].symbol];
    code_lengths(frequencies, kCodeLengthLimit, lengths_);
    codewords(lengths_, words_);
    sent_ = kCodeLengthSymbols;
    while (sent_ > 4 && lengths_[kCodeLengthOrder[sent_ - 1]] == 0) --sent_;
  }

  std::uint64_t bits() const {
    std::uint64_t bits = 14 + 3 * sent_;
    for (std::size_t i = 0; i < item_count_; ++i) {
      bits += lengths_[items_[i].symbol] + std::uint64_t{items_[i].extra_bits};
    }
    return bits;
  }

  void write(BitWriter& out) const {
    out.put(litlen_count_ - 257, 5);
    out.put(distance_count_ - 1, 5);
    out.put(sent_ - 4, 4);
    for (std::size_t i = 0; i < sent_; ++i) {
      out.put(lengths_[kCodeLengthOrder[i]], 3);
      out.flush();
    }
    for (std::size_t i = 0; i < item_count_; ++i) {
      const Item& item = items_[i];
      out.put(words_[item.symbol], lengths_[item.symbol]);
      out.put(item.extra, item.extra_bits);
      out.flush();
    }
  }

 private:
  struct Item {
    std::uint8_t symbol = 0;
    std::uint8_t extra = 0;
    std::uint8_t extra_bits = 0;
  };

  void add(std::size_t symbol, std::size_t extra, unsigned extra_bits) {
    items_[item_count_++] = {static_cast<std::uint8_t>(symbol), static_cast<std::uint8_t>(extra),
                             static_cast<std::uint8_t>(extra_bits)};
  }

  void encode(std::span<const std::uint8_t> all) {
    for (std::size_t at = 0; at < all.size();) {
      const std::uint8_t value = all[at];
      std::size_t run = 1;
      while (at + run < all.size() && all[at + run] == value) ++run;
      at += run;
      if (value == 0) {
        encode_zeros(run);
      } else {
        add(value, 0, 0);
        encode_repeats(value, run - 1);
      }
    }
  }
  void encode_zeros(std::size_t run) {
    for (; run >= 11; run -= std::min<std::size_t>(run, 138)) {
      add(18, std::min<std::size_t>(run, 138) - 11, 7);
    }
    if (run >= 3) {
      add(17, run - 3, 3);
      run = 0;
    }
    for (; run > 0; --run) add(0, 0, 0);
  }
  void encode_repeats(std::uint8_t value, std::size_t run) {
    for (; run >= 3; run -= std::min<std::size_t>(run, 6)) {
      add(16, std::min<std::size_t>(run, 6) - 3, 2);
    }
    for (; run > 0; --run) add(value, 0, 0);
  }

  std::array<Item, kLitLenSymbols + kDistanceSymbols> items_{};
  std::size_t item_count_ = 0;
  std::size_t litlen_count_ = 0;
  std::size_t distance_count_ = 0;
  std::size_t sent_ = 0;
  std::array<std::uint8_t, kCodeLengthSymbols> lengths_{};
  std::array<std::uint16_t, kCodeLengthSymbols> words_{};
};

/// Codeword and length in one load.
struct Coded {
  std::uint32_t word = 0;
  std::uint32_t bits = 0;
};

void write_body(BitWriter& out, std::span<const Token> tokens, const Lengths& lengths) {
  std::array<std::uint16_t, kLitLenSymbols + 2> litlen_words{};
  std::array<std::uint16_t, kDistanceSymbols + 2> distance_words{};
  codewords(lengths.litlen, litlen_words);
  codewords(lengths.distance, distance_words);
  std::array<Coded, 257> literals{};
  for (std::size_t i = 0; i < literals.size(); ++i)
    literals[i] = {litlen_words[i], lengths.litlen[i]};
  std::array<Coded, kMaxMatch + 1> matches{};  // by length, extra bits included
  for (std::size_t length = kMinMatch; length <= kMaxMatch; ++length) {
    const std::size_t slot = length_slot(length);
    const std::size_t symbol = kEndOfBlock + 1 + slot;
    const auto extra = static_cast<std::uint32_t>(length - kLengthSlots[slot].base);
    matches[length] = {litlen_words[symbol] | extra << lengths.litlen[symbol],
                       lengths.litlen[symbol] + std::uint32_t{kLengthSlots[slot].extra_bits}};
  }
  for (const Token token : tokens) {
    if (token.is_literal()) {
      const Coded coded = literals[token.byte()];
      out.put(coded.word, coded.bits);
    } else {
      const Coded coded = matches[token.length()];
      const std::size_t slot = distance_slot(token.distance());
      out.put(coded.word, coded.bits);
      out.put(distance_words[slot], lengths.distance[slot]);
      out.put(token.distance() - kDistanceSlots[slot].base, kDistanceSlots[slot].extra_bits);
    }
    out.flush();
  }
  out.put(literals[kEndOfBlock].word, literals[kEndOfBlock].bits);
  out.flush();
}

std::uint64_t stored_bits(std::size_t size, unsigned held_bits) {
  const std::size_t blocks = std::max<std::size_t>(1, (size + kStoredLimit - 1) / kStoredLimit);
  const unsigned first = 3 + (8 - (held_bits + 3) % 8) % 8;
  return std::uint64_t{size} * 8 + first + (blocks - 1) * 8 + blocks * 32;
}

void write_stored(BitWriter& out, ByteView raw, bool last) {
  do {
    const std::size_t count = std::min(raw.size(), kStoredLimit);
    const bool final = last && count == raw.size();
    out.put((final ? 1U : 0U) | kTypeStored << 1U, 3);
    out.align();
    out.put(count, 16);
    out.put(count ^ 0xFFFFU, 16);
    out.align();
    out.append(raw.first(count));
    raw = raw.subspan(count);
  } while (!raw.empty());
}

}  // namespace

void BitWriter::start() {
  size_ = 0;
  hold_ = 0;
  held_ = 0;
}

void BitWriter::reserve(std::size_t more_bytes) {
  const std::size_t needed = size_ + more_bytes + kSlack;
  if (out_.size() < needed) out_.resize(std::max(needed, 2 * out_.size()));
}

void BitWriter::flush() {
  // Eight bytes are written, those that are complete are kept.
  std::uint64_t bytes = hold_;
  if constexpr (std::endian::native == std::endian::big) bytes = __builtin_bswap64(bytes);
  std::memcpy(out_.data() + size_, &bytes, sizeof bytes);
  const unsigned whole = held_ / 8;
  size_ += whole;
  hold_ >>= whole * 8;
  held_ -= whole * 8;
}

void BitWriter::align() {
  held_ = (held_ + 7) / 8 * 8;
  flush();
}

void BitWriter::append(ByteView data) {
  if (!data.empty()) std::memcpy(out_.data() + size_, data.data(), data.size());
  size_ += data.size();
}

ByteView BitWriter::finish() {
  reserve(sizeof hold_);
  align();
  return ByteView(out_).first(size_);
}

void write_block(BitWriter& out, const Block& block) {
  const Lengths fixed = fixed_lengths();
  const Lengths dynamic = dynamic_lengths(block.histogram);
  const DynamicHeader header{dynamic};
  const std::uint64_t stored_size = stored_bits(block.raw.size(), out.held_bits());
  const std::uint64_t fixed_size = 3 + body_bits(block.histogram, fixed);
  const std::uint64_t dynamic_size = 3 + header.bits() + body_bits(block.histogram, dynamic);
  const std::uint64_t smallest = std::min({stored_size, fixed_size, dynamic_size});
  out.reserve(static_cast<std::size_t>(smallest / 8 + 1));
  if (stored_size == smallest) {
    write_stored(out, block.raw, block.last);
    return;
  }
  const std::uint64_t final = block.last ? 1 : 0;
  if (fixed_size == smallest) {
    out.put(final | kTypeFixed << 1U, 3);
    write_body(out, block.tokens, fixed);
    return;
  }
  out.put(final | kTypeDynamic << 1U, 3);
  out.flush();
  header.write(out);
  write_body(out, block.tokens, dynamic);
}

}  // namespace mlenv::deflate
