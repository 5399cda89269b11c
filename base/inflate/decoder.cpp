#include "base/inflate/decoder.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/deflate/symbols.hpp"

namespace mlenv::inflate {
namespace {

using deflate::kCodeLengthOrder;
using deflate::kCodeLengthSymbols;
using deflate::kMaxMatch;
using deflate::kTypeDynamic;
using deflate::kTypeFixed;
using deflate::kTypeStored;
using deflate::kWindow;

constexpr std::size_t kInputBytes = std::size_t{128} << 10;
constexpr std::size_t kPartBytes = std::size_t{256} << 10;
/// More than a block's header takes (RFC 1951 §3.2.7: 17 + 19 * 3 + 320 * 14 bits): such a piece of
/// input lies in one place, at the input's end with zeros behind it.
constexpr std::size_t kAhead = 1024;
/// In front of where input is read to: what was left of the last, and whole bytes that were loaded
/// from it but may be given back.
constexpr std::size_t kGiveBack = 8;
constexpr std::size_t kLead = kAhead + kGiveBack;
/// With less room than this for a part, history moves to the window's start.
constexpr std::size_t kLeastPart = std::size_t{64} << 10;
/// What one turn of the decoder's loop may read: three loads of a word, seven bytes further each.
constexpr std::size_t kTurnInput = 32;
/// What one turn may write: three literals, or a match and what its copy writes beyond.
constexpr std::size_t kTurnOutput = kMaxMatch + 64;

/// Alphabets as the fixed code has them, with two symbols each that stand for nothing.
constexpr std::size_t kLitLenAlphabet = 288;
constexpr std::size_t kDistanceAlphabet = 32;

constexpr std::array<Entry, kLitLenAlphabet> litlen_meanings() {
  std::array<Entry, kLitLenAlphabet> meanings{};
  for (std::size_t i = 0; i < kLitLenAlphabet; ++i) {
    const std::size_t slot = i - deflate::kEndOfBlock - 1;
    if (i < deflate::kEndOfBlock) {
      meanings[i] = static_cast<Entry>(i << 16U) | kLiteral;
    } else if (i == deflate::kEndOfBlock) {
      meanings[i] = kEnd;
    } else if (slot < deflate::kLengthSymbols) {
      meanings[i] = static_cast<Entry>(deflate::kLengthSlots[slot].base << 16U) |
                    deflate::kLengthSlots[slot].extra_bits;
    } else {
      meanings[i] = kInvalid;
    }
  }
  return meanings;
}
constexpr std::array<Entry, kDistanceAlphabet> distance_meanings() {
  std::array<Entry, kDistanceAlphabet> meanings{};
  for (std::size_t i = 0; i < kDistanceAlphabet; ++i) {
    meanings[i] = i < deflate::kDistanceSymbols
                      ? static_cast<Entry>(deflate::kDistanceSlots[i].base << 16U) |
                            deflate::kDistanceSlots[i].extra_bits
                      : kInvalid;
  }
  return meanings;
}
constexpr std::array<Entry, kCodeLengthSymbols> code_length_meanings() {
  std::array<Entry, kCodeLengthSymbols> meanings{};
  for (std::size_t i = 0; i < kCodeLengthSymbols; ++i) meanings[i] = static_cast<Entry>(i << 16U);
  return meanings;
}
constexpr auto kLitLenMeanings = litlen_meanings();
constexpr auto kDistanceMeanings = distance_meanings();
constexpr auto kCodeLengthMeanings = code_length_meanings();

std::uint64_t load64(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::big ? __builtin_bswap64(word) : word;
}

constexpr std::uint64_t mask_of(unsigned bits) { return (std::uint64_t{1} << bits) - 1; }

void copy_word(std::uint8_t* to, const std::uint8_t* from) { std::memcpy(to, from, 8); }

/// A match; may write up to 40 bytes beyond its end.
inline void copy_match(std::uint8_t* out, std::size_t distance, std::size_t length) {
  const std::uint8_t* from = out - distance;
  std::uint8_t* const end = out + length;
  if (distance >= 8) [[likely]] {
    // Most matches are short: the first words without asking.
    copy_word(out, from);
    copy_word(out + 8, from + 8);
    copy_word(out + 16, from + 16);
    for (std::size_t done = 24; done < length; done += 16) {
      copy_word(out + done, from + done);
      copy_word(out + done + 8, from + done + 8);
    }
  } else if (distance == 1) {
    const std::uint64_t word = *from * std::uint64_t{0x0101010101010101};
    for (; out < end; out += 8) std::memcpy(out, &word, 8);
  } else {
    for (; out < end; ++out, ++from) *out = *from;
  }
}

/// What the decoder's loop keeps in registers. An entry is looked up as soon as its bits are known,
/// before the work for the last one is done: what takes time here is the wait from one entry to the
/// next.
struct Turn {
  enum class Found { length, literal, end, nothing };

  const std::uint8_t* in;
  std::uint64_t bits;
  unsigned count;  ///< in the lowest eight bits; above them is nothing of meaning
  std::uint8_t* out;
  const Entry* litlen;
  const Entry* distances;
  std::uint64_t taken = 0;  ///< `bits` before the last entry was taken

  [[gnu::always_inline]] bool may_go_on(const std::uint8_t* in_limit,
                                        const std::uint8_t* out_limit) const {
    return in < in_limit && out < out_limit;
  }
  [[gnu::always_inline]] void load() {
    bits |= load64(in) << (count & 63U);
    in += 7 - (count >> 3U & 7U);
    count |= 56U;
  }
  [[gnu::always_inline]] Entry look_up() const { return litlen[bits & mask_of(kLitLenBits)]; }
  [[gnu::always_inline]] void take(Entry entry) {
    taken = bits;
    bits >>= entry & 63U;
    count -= entry;
  }
  /// Of the entry taken last: the value with its extra bits.
  [[gnu::always_inline]] std::size_t value(Entry entry) const {
    return value_of(entry) + ((taken & mask_of(entry & 63U)) >> (entry >> 8U & 63U));
  }
  /// The whole of a codeword of which the index knows the beginning.
  [[gnu::always_inline]] Entry longer(const Entry* table, Entry entry) const {
    return table[value_of(entry) + (bits >> (entry & 63U) & mask_of(code_bits_of(entry)))];
  }
  /// `entry` is the next one afterwards.
  [[gnu::always_inline]] void put_literal(Entry& entry) {
    take(entry);
    const Entry next = look_up();
    *out++ = static_cast<std::uint8_t>(value_of(entry));
    entry = next;
  }

  /// Up to three literals, which take at most 33 of 56 bits; true when there were three, and bits
  /// are there for another turn. Else those for a length are: it takes 20.
  [[gnu::always_inline]] bool put_literals(Entry& entry) {
    if ((entry & kLiteral) == 0) return false;
    put_literal(entry);
    if ((entry & kLiteral) == 0) return false;
    put_literal(entry);
    if ((entry & kLiteral) == 0) return false;
    put_literal(entry);
    load();
    return true;
  }

  /// What else a turn may begin with. After a literal, `entry` is the next one.
  [[gnu::always_inline]] Found take_symbol(Entry& entry) {
    if ((entry & kOther) == 0) [[likely]] {
      take(entry);
      return Found::length;
    }
    if ((entry & kLonger) != 0) entry = longer(litlen, entry);
    take(entry);
    if ((entry & kInvalid) != 0) return Found::nothing;
    if ((entry & kEnd) != 0) return Found::end;
    if ((entry & kLiteral) == 0) return Found::length;
    *out++ = static_cast<std::uint8_t>(value_of(entry));
    load();
    entry = look_up();
    return Found::literal;
  }

  /// Of the length taken last; `entry` is the next one afterwards. False where there is no such
  /// distance, or it reaches beyond the window's start.
  [[gnu::always_inline]] bool put_match(Entry& entry, const std::uint8_t* window) {
    const std::size_t length = value(entry);
    // A distance takes 28 bits, the index behind it 11.
    if ((count & 63U) < 28 + kLitLenBits) load();
    entry = distances[bits & mask_of(kDistanceBits)];
    if ((entry & kLonger) != 0) [[unlikely]] {
      entry = longer(distances, entry);
    }
    take(entry);
    const std::size_t distance = value(entry);
    const bool reaches_back = distance <= static_cast<std::size_t>(out - window);
    if (!reaches_back || (entry & kInvalid) != 0) [[unlikely]] {
      return false;
    }
    entry = look_up();
    load();
    copy_match(out, distance, length);
    out += length;
    return true;
  }
};

}  // namespace

Decoder::Decoder(Source& in)
    : source_(in), input_(kLead + kInputBytes + kAhead), window_(kWindow + kPartBytes) {
  in_ = in_end_ = reinterpret_cast<const std::uint8_t*>(input_.data()) + kLead;
  out_ = reinterpret_cast<std::uint8_t*>(window_.data());
}

/// Makes room for another part; what was given is history now. The window starts with the oldest
/// byte that a match may reach.
void Decoder::slide() {
  auto* const window = reinterpret_cast<std::uint8_t*>(window_.data());
  const auto room = [&] { return static_cast<std::size_t>(window + window_.size() - out_); };
  if (room() < kLeastPart) {
    std::memmove(window, out_ - kWindow, kWindow);
    out_ = window + kWindow;
  }
  out_begin_ = out_;
  out_limit_ = out_ + std::min(room(), kPartBytes) - kTurnOutput;
}

/// So many bytes of input lie at `in_`, or all that is left, with zeros behind.
void Decoder::fill(std::size_t bytes) {
  auto* const room = reinterpret_cast<std::uint8_t*>(input_.data()) + kLead;
  while (input_left() < bytes && !in_over_) {
    const std::size_t left = input_left();
    std::uint8_t* const begin = room - left;
    std::memmove(begin - kGiveBack, in_ - kGiveBack, left + kGiveBack);
    const std::size_t got = source_.read(ByteSpan(input_).subspan(kLead, kInputBytes));
    in_ = begin;
    in_end_ = room + got;
    in_over_ = got == 0;
  }
  if (in_over_) std::memset(room, 0, kAhead);
}

inline void Decoder::load() {
  bits_ |= load64(in_) << count_;
  in_ += (63 - count_) / 8;
  count_ |= 56U;
}

inline void Decoder::take(unsigned count) {
  bits_ >>= count;
  count_ -= count;
}

inline std::uint64_t Decoder::take_value(unsigned count) {
  const std::uint64_t value = bits_ & mask_of(count);
  take(count);
  return value;
}

/// Bits were used that the input does not have.
bool Decoder::overran() const { return in_ - count_ / 8 > in_end_; }

Decoder::Part Decoder::next() {
  slide();
  State state = State::going;
  const std::size_t wanted = block_ == Block::header ? kAhead : kTurnInput + 1;
  if (input_left() < wanted) fill(wanted);
  while (state == State::going && out_ < out_limit_) {
    // Where more must be read first, what is there goes out before.
    const bool short_of_header = block_ == Block::header && input_left() < kAhead;
    if (!in_over_ && (short_of_header || input_left() <= kTurnInput)) break;
    switch (block_) {
      case Block::header:
        state = read_header();
        break;
      case Block::stored:
        state = copy_stored();
        break;
      case Block::coded:
        state = decode();
        break;
      case Block::done:
        state = State::finished;
        break;
    }
    // What the zeros behind the input's end say tells nothing.
    if (overran()) state = State::truncated;
  }
  const auto given = static_cast<std::size_t>(out_ - out_begin_);
  return {ByteView(reinterpret_cast<const std::byte*>(out_begin_), given), state};
}

bool Decoder::followed() {
  in_ -= count_ / 8;
  count_ = 0;
  bits_ = 0;
  fill(1);
  return input_left() > 0;
}

Decoder::State Decoder::read_header() {
  load();
  last_block_ = take_value(1) != 0;
  const std::uint64_t type = take_value(2);
  if (type == kTypeStored) return read_stored_header();
  if (type == kTypeFixed) {
    use_fixed_code();
  } else if (type != kTypeDynamic || !read_code()) {
    return State::malformed;
  }
  block_ = Block::coded;
  return State::going;
}

Decoder::State Decoder::read_stored_header() {
  take(count_ % 8);
  // Whole bytes that were loaded go back.
  in_ -= count_ / 8;
  count_ = 0;
  bits_ = 0;
  const std::uint64_t word = load64(in_);
  in_ += 4;
  stored_left_ = word & 0xFFFFU;
  if ((word >> 16U & 0xFFFFU) != (stored_left_ ^ 0xFFFFU)) return State::malformed;
  block_ = Block::stored;
  return State::going;
}

Decoder::State Decoder::copy_stored() {
  const std::size_t count =
      std::min({stored_left_, input_left(), static_cast<std::size_t>(out_limit_ - out_)});
  if (count == 0 && stored_left_ > 0) return State::truncated;
  if (count > 0) std::memcpy(out_, in_, count);
  in_ += count;
  out_ += count;
  stored_left_ -= count;
  if (stored_left_ == 0) block_ = last_block_ ? Block::done : Block::header;
  return State::going;
}

/// Blocks may be ten bits long: the tables are not made anew for each.
void Decoder::use_fixed_code() {
  if (fixed_) return;
  fixed_ = true;
  std::array<std::uint8_t, kLitLenAlphabet> litlen{};
  std::fill(litlen.begin(), litlen.begin() + 144, std::uint8_t{8});
  std::fill(litlen.begin() + 144, litlen.begin() + 256, std::uint8_t{9});
  std::fill(litlen.begin() + 256, litlen.begin() + 280, std::uint8_t{7});
  std::fill(litlen.begin() + 280, litlen.end(), std::uint8_t{8});
  std::array<std::uint8_t, kDistanceAlphabet> distance{};
  distance.fill(5);
  (void)fill_table(litlen, kLitLenMeanings, kLitLenBits, litlen_);
  (void)fill_table(distance, kDistanceMeanings, kDistanceBits, distance_);
}

bool Decoder::read_code() {
  fixed_ = false;
  const std::size_t litlen_count = take_value(5) + 257;
  const std::size_t distance_count = take_value(5) + 1;
  const std::size_t sent = take_value(4) + 4;
  if (litlen_count > deflate::kLitLenSymbols || distance_count > deflate::kDistanceSymbols) {
    return false;
  }
  std::array<std::uint8_t, kCodeLengthSymbols> code{};
  load();
  for (std::size_t i = 0; i < sent; ++i) {
    if (i == sent / 2) load();  // 57 bits at most in two loads of 56
    code[kCodeLengthOrder[i]] = static_cast<std::uint8_t>(take_value(3));
  }
  // A single codeword is no complete code; zlib takes it for literals and distances alone.
  if (std::count(code.begin(), code.end(), 0) == kCodeLengthSymbols - 1) return false;
  std::array<Entry, kCodeLengthRoom> table{};
  if (!fill_table(code, kCodeLengthMeanings, kCodeLengthBits, table)) return false;
  std::copy(table.begin(), table.end(), litlen_.begin());

  std::array<std::uint8_t, kLitLenAlphabet + kDistanceAlphabet> lengths{};
  const std::span all = std::span(lengths).first(litlen_count + distance_count);
  if (!read_lengths(all) || all[deflate::kEndOfBlock] == 0) return false;
  return fill_table(all.first(litlen_count), kLitLenMeanings, kLitLenBits, litlen_) &&
         fill_table(all.subspan(litlen_count), kDistanceMeanings, kDistanceBits, distance_);
}

/// By the code for code lengths, which stands in `litlen_` (RFC 1951 §3.2.7). Without any codeword
/// it gives zeros, which make no code.
bool Decoder::read_lengths(std::span<std::uint8_t> lengths) {
  for (std::size_t at = 0; at < lengths.size();) {
    load();
    const Entry entry = litlen_[bits_ & mask_of(kCodeLengthBits)];
    take(bits_of(entry));
    const unsigned symbol = value_of(entry);
    if (symbol < 16) {
      lengths[at++] = static_cast<std::uint8_t>(symbol);
      continue;
    }
    std::uint8_t value = 0;
    std::size_t count = 0;
    if (symbol == 16) {
      count = 3 + take_value(2);
      if (at == 0) return false;
      value = lengths[at - 1];
    } else {
      count = symbol == 17 ? 3 + take_value(3) : 11 + take_value(7);
    }
    if (count > lengths.size() - at) return false;
    std::fill_n(lengths.begin() + static_cast<std::ptrdiff_t>(at), count, value);
    at += count;
  }
  return true;
}

/// Symbols until the block ends, the input is nearly used up, or the part is full.
[[gnu::always_inline]] inline Decoder::State Decoder::decode_symbols() {
  // At the input's end what lies behind it is zeros, which may be read, but not for ever.
  const std::uint8_t* const in_limit = in_over_ ? in_end_ + kTurnInput : in_end_ - kTurnInput;
  const auto* const window = reinterpret_cast<const std::uint8_t*>(window_.data());
  const std::uint8_t* const out_limit = out_limit_;
  Turn turn{in_, bits_, count_, out_, litlen_.data(), distance_.data()};
  if (!turn.may_go_on(in_limit, out_limit)) return State::going;
  State state = State::going;
  turn.load();
  Entry entry = turn.look_up();
  do {
    if (turn.put_literals(entry)) continue;
    const Turn::Found found = turn.take_symbol(entry);
    if (found == Turn::Found::literal) continue;
    if (found == Turn::Found::end) {
      block_ = last_block_ ? Block::done : Block::header;
      break;
    }
    if (found == Turn::Found::nothing || !turn.put_match(entry, window)) {
      state = State::malformed;
      break;
    }
  } while (turn.may_go_on(in_limit, out_limit));
  in_ = turn.in;
  bits_ = turn.bits;
  count_ = turn.count & 63U;
  out_ = turn.out;
  return state;
}

Decoder::State Decoder::decode_anywhere() { return decode_symbols(); }

#if defined(__x86_64__)
// Shifts by any count in one instruction.
__attribute__((target("bmi2"))) Decoder::State Decoder::decode_with_bmi2() {
  return decode_symbols();
}

Decoder::State Decoder::decode() {
  static const bool has_bmi2 = __builtin_cpu_supports("bmi2") != 0;
  return has_bmi2 ? decode_with_bmi2() : decode_anywhere();
}
#else
Decoder::State Decoder::decode() { return decode_anywhere(); }
#endif

}  // namespace mlenv::inflate
