#pragma once
// The symbols of DEFLATE (RFC 1951 §3.2.5): how a token of the LZ77 stage, a literal byte or a
// (length, distance) pair, becomes a symbol and extra bits.
#include <array>
#include <cstddef>
#include <cstdint>

namespace mlenv::deflate {

inline constexpr std::size_t kMinMatch = 3;
inline constexpr std::size_t kMaxMatch = 258;
inline constexpr std::size_t kWindow = 32768;

inline constexpr std::size_t kEndOfBlock = 256;
inline constexpr std::size_t kLengthSymbols = 29;
inline constexpr std::size_t kLitLenSymbols = kEndOfBlock + 1 + kLengthSymbols;
inline constexpr std::size_t kDistanceSymbols = 30;
inline constexpr std::size_t kCodeLengthSymbols = 19;
/// The order in which code-length code lengths are sent (RFC 1951 §3.2.7).
inline constexpr std::array<std::uint8_t, kCodeLengthSymbols> kCodeLengthOrder{
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

/// A block's type, and how much a stored one holds (RFC 1951 §3.2.3, §3.2.4).
inline constexpr unsigned kTypeStored = 0;
inline constexpr unsigned kTypeFixed = 1;
inline constexpr unsigned kTypeDynamic = 2;
inline constexpr std::size_t kStoredLimit = 65535;

/// One symbol of a length or distance alphabet: the first value it stands for and how many extra
/// bits choose among the values that follow.
struct Slot {
  std::uint16_t base = 0;
  std::uint8_t extra_bits = 0;
};

namespace detail {
constexpr std::array<Slot, kLengthSymbols> length_slots() {
  std::array<Slot, kLengthSymbols> slots{};
  std::uint16_t base = 3;
  for (std::size_t i = 0; i + 1 < kLengthSymbols; ++i) {
    const auto extra = static_cast<std::uint8_t>(i < 8 ? 0 : i / 4 - 1);
    slots[i] = {base, extra};
    base = static_cast<std::uint16_t>(base + (1U << extra));
  }
  slots[kLengthSymbols - 1] = {258, 0};
  return slots;
}
constexpr std::array<Slot, kDistanceSymbols> distance_slots() {
  std::array<Slot, kDistanceSymbols> slots{};
  std::uint16_t base = 1;
  for (std::size_t i = 0; i < kDistanceSymbols; ++i) {
    const auto extra = static_cast<std::uint8_t>(i < 4 ? 0 : i / 2 - 1);
    slots[i] = {base, extra};
    base = static_cast<std::uint16_t>(base + (1U << extra));
  }
  return slots;
}
}  // namespace detail

inline constexpr auto kLengthSlots = detail::length_slots();
inline constexpr auto kDistanceSlots = detail::distance_slots();

namespace detail {
/// Slot of each length, by length - 3.
constexpr std::array<std::uint8_t, 256> length_lookup() {
  std::array<std::uint8_t, 256> lookup{};
  for (std::size_t slot = 0; slot < kLengthSymbols; ++slot) {
    const std::size_t first = kLengthSlots[slot].base - kMinMatch;
    for (std::size_t i = 0; i < (std::size_t{1} << kLengthSlots[slot].extra_bits); ++i) {
      if (first + i < 256) lookup[first + i] = static_cast<std::uint8_t>(slot);
    }
  }
  return lookup;
}
/// Slot of each distance: by distance - 1 up to 256, then by (distance - 1) / 128 in the second
/// half.
constexpr std::array<std::uint8_t, 512> distance_lookup() {
  std::array<std::uint8_t, 512> lookup{};
  for (std::size_t slot = 0; slot < kDistanceSymbols; ++slot) {
    const std::size_t first = kDistanceSlots[slot].base - 1U;
    for (std::size_t i = 0; i < (std::size_t{1} << kDistanceSlots[slot].extra_bits); ++i) {
      const std::size_t value = first + i;
      lookup[value < 256 ? value : 256 + (value >> 7U)] = static_cast<std::uint8_t>(slot);
    }
  }
  return lookup;
}
}  // namespace detail

inline constexpr auto kLengthLookup = detail::length_lookup();
inline constexpr auto kDistanceLookup = detail::distance_lookup();

inline std::size_t length_slot(std::size_t length) { return kLengthLookup[length - kMinMatch]; }
inline std::size_t distance_slot(std::size_t distance) {
  const std::size_t value = distance - 1;
  return kDistanceLookup[value < 256 ? value : 256 + (value >> 7U)];
}

/// A literal (its byte value) or a match (distance << 9 | length), in one word.
class Token {
 public:
  Token() = default;
  static Token literal(std::uint8_t byte) { return Token{byte}; }
  static Token match(std::uint32_t length, std::uint32_t distance) {
    return Token{distance << 9U | length};
  }
  bool is_literal() const { return value_ < 256; }
  std::size_t byte() const { return value_; }
  std::size_t length() const { return value_ & 511U; }
  std::size_t distance() const { return value_ >> 9U; }

 private:
  explicit Token(std::uint32_t value) : value_(value) {}
  std::uint32_t value_ = 0;
};

/// How often each symbol occurs.
struct Histogram {
  std::array<std::uint32_t, kLitLenSymbols> litlen{};
  std::array<std::uint32_t, kDistanceSymbols> distance{};

  void count(Token token) {
    if (token.is_literal()) {
      ++litlen[token.byte()];
    } else {
      ++litlen[kEndOfBlock + 1 + length_slot(token.length())];
      ++distance[distance_slot(token.distance())];
    }
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < litlen.size(); ++i) litlen[i] += other.litlen[i];
    for (std::size_t i = 0; i < distance.size(); ++i) distance[i] += other.distance[i];
  }
};

}  // namespace mlenv::deflate
