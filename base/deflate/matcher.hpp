#pragma once
// Finds earlier occurrences of the bytes at a position, within the 32 KiB window: the LZ77 half of
// the frozen encoder.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/deflate/symbols.hpp"

namespace mlenv::deflate {

struct Match {
  std::uint32_t length = 0;  ///< 0: none
  std::uint32_t distance = 0;
};

/// How much work one search may be.
struct Effort {
  unsigned candidates = 0;   ///< how many earlier positions are looked at
  std::uint32_t enough = 0;  ///< a match this long ends the search
};

/// Works on one input of at most 1 MiB. Tables hold the low 16 bits of positions; what they say is
/// always compared with the bytes, so an entry that is too old costs time, never correctness.
class Matcher {
 public:
  Matcher();
  /// Takes a copy of `input` and forgets the last one.
  void start(ByteView input);
  /// Longest match at `position` that is longer than `longer_than` bytes; enters the position into
  /// the tables. Positions come in ascending order; one may be left out, and is then never matched.
  Match find(std::size_t position, std::uint32_t longer_than, Effort effort);
  /// Enters positions [first, last) into the tables.
  void skip(std::size_t first, std::size_t last);
  std::uint8_t at(std::size_t position) const { return input_[position]; }

 private:
  /// Enters `position`; gives the last position (low 16 bits) with the same 3 and 4 bytes.
  struct Heads {
    std::uint16_t three = 0;
    std::uint16_t four = 0;
  };
  Heads enter(std::size_t position);
  Match find_three(std::size_t position, std::uint16_t head, std::uint32_t limit) const;

  static constexpr unsigned kHash3Bits = 14;
  static constexpr unsigned kHash4Bits = 16;
  std::vector<std::uint8_t> input_;
  std::size_t size_ = 0;
  std::array<std::uint16_t, std::size_t{1} << kHash3Bits> last3_{};
  std::array<std::uint16_t, std::size_t{1} << kHash4Bits> last4_{};
  std::array<std::uint16_t, kWindow> previous_{};
};

}  // namespace mlenv::deflate
