#pragma once
// Finds earlier occurrences of the bytes at a position, within the 32 KiB window: the LZ77 half of
// the frozen encoder.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.hpp"
#include "base/deflate/symbols.hpp"

namespace mlenv::deflate {

struct Match {
  std::uint32_t length = 0;  ///< 0: none
  std::uint32_t distance = 0;
};

/// Remembers the last position where the same three, four and eight bytes stood, one each: a search
/// looks at three places at most. Works on one input of at most 1 MiB. Tables hold the low 16 bits
/// of positions; what they say is always compared with the bytes, so an entry that is too old, or
/// of other bytes with the same hash, costs time, never correctness.
class Matcher {
 public:
  Matcher();
  /// Takes a copy of `input` and forgets the last one.
  void start(ByteView input);
  /// The match at `position` by the longest table that has one; enters the position into the
  /// tables. Positions come in ascending order; one may be left out, and is then never matched.
  Match find(std::size_t position);
  /// As `find`, without the table of three bytes.
  Match find_longer(std::size_t position);
  /// Enters positions [first, last) into the tables.
  void skip(std::size_t first, std::size_t last);
  std::uint8_t at(std::size_t position) const { return input_[position]; }

 private:
  /// Zero bytes after the input, so that loads of a word need no check.
  static constexpr std::size_t kSlack = 16;
  /// Nothing is found where fewer bytes are left: comparing eight needs no check.
  static constexpr std::size_t kWord = 8;
  static constexpr unsigned kHash3Bits = 12;
  static constexpr unsigned kHash4Bits = 15;
  static constexpr unsigned kHash8Bits = 15;
  /// A match of three bytes that lies further back costs more than three literals.
  static constexpr std::uint32_t kFarForThree = 4096;
  /// Odd numbers with well mixed bits: xxHash's primes, and 2^32 divided by the golden ratio.
  static constexpr std::uint32_t kMultiplier3 = 0x9E3779B1U;
  static constexpr std::uint32_t kMultiplier4 = 0x85EBCA77U;
  static constexpr std::uint64_t kMultiplier8 = 0x9E3779B185EBCA87U;

  /// How far back each table says that the same bytes stood, in 16 bits; may be wrong.
  struct Distances {
    std::uint32_t three = 0;
    std::uint32_t four = 0;
    std::uint32_t eight = 0;
  };

  /// Little-endian, so that the low bytes are the first.
  static std::uint64_t load(const std::uint8_t* bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    return std::endian::native == std::endian::big ? __builtin_bswap64(word) : word;
  }
  Distances enter(std::size_t position, std::uint64_t word);
  std::uint32_t common_length(std::size_t position, std::uint32_t distance,
                              std::uint32_t known) const;
  template <bool kThree>
  Match search(std::size_t position);

  std::vector<std::uint8_t> input_;
  std::size_t size_ = 0;
  std::array<std::uint16_t, std::size_t{1} << kHash3Bits> last3_{};
  std::array<std::uint16_t, std::size_t{1} << kHash4Bits> last4_{};
  std::array<std::uint16_t, std::size_t{1} << kHash8Bits> last8_{};
};

inline Matcher::Distances Matcher::enter(std::size_t position, std::uint64_t word) {
  const auto four = static_cast<std::uint32_t>(word);
  std::uint16_t& last3 = last3_[((four << 8U) * kMultiplier3) >> (32U - kHash3Bits)];
  std::uint16_t& last4 = last4_[(four * kMultiplier4) >> (32U - kHash4Bits)];
  std::uint16_t& last8 = last8_[(word * kMultiplier8) >> (64U - kHash8Bits)];
  const auto here = static_cast<std::uint32_t>(position);
  const Distances distances{(here - last3) & 0xFFFFU, (here - last4) & 0xFFFFU,
                            (here - last8) & 0xFFFFU};
  last3 = last4 = last8 = static_cast<std::uint16_t>(position);
  return distances;
}

/// How many bytes agree, at most the longest match; the first `known` are known to.
inline std::uint32_t Matcher::common_length(std::size_t position, std::uint32_t distance,
                                            std::uint32_t known) const {
  const auto limit = static_cast<std::uint32_t>(std::min(kMaxMatch, size_ - position));
  const std::uint8_t* here = input_.data() + position;
  std::uint32_t length = known;
  while (length < limit) {
    const std::uint64_t difference = load(here + length) ^ load(here - distance + length);
    if (difference != 0) {
      length += static_cast<std::uint32_t>(std::countr_zero(difference)) / 8;
      break;
    }
    length += kWord;
  }
  return std::min(length, limit);
}

template <bool kThree>
inline Match Matcher::search(std::size_t position) {
  const std::uint8_t* here = input_.data() + position;
  const std::uint64_t word = load(here);
  const Distances back = enter(position, word);
  if (size_ - position < kWord) return {};
  // A distance of 0 becomes the largest number.
  const auto window = static_cast<std::uint32_t>(std::min(kWindow, position));
  if (back.eight - 1 < window && load(here - back.eight) == word)
    return {common_length(position, back.eight, 8), back.eight};
  if (back.four - 1 < window && ((load(here - back.four) ^ word) << 32U) == 0)
    return {common_length(position, back.four, 4), back.four};
  if constexpr (kThree) {
    if (back.three - 1 < std::min(window, kFarForThree) &&
        ((load(here - back.three) ^ word) << 40U) == 0)
      return {3, back.three};
  }
  return {};
}

inline Match Matcher::find(std::size_t position) { return search<true>(position); }

inline Match Matcher::find_longer(std::size_t position) { return search<false>(position); }

inline void Matcher::skip(std::size_t first, std::size_t last) {
  for (std::size_t position = first; position < last; ++position)
    (void)enter(position, load(input_.data() + position));
}

}  // namespace mlenv::deflate
