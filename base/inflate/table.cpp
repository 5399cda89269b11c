#include "base/inflate/table.hpp"

#include <algorithm>

namespace mlenv::inflate {
namespace {

constexpr std::size_t kMostSymbols = 288;

Entry with_code(Entry meaning, unsigned code_bits) {
  return meaning + (code_bits << 8U) + code_bits;
}

/// The next codeword of the same length, kept with its first bit lowest, as the stream has it.
std::size_t next_codeword(std::size_t word, unsigned length) {
  std::size_t bit = std::size_t{1} << (length - 1);
  while ((word & bit) != 0) {
    word ^= bit;
    bit >>= 1U;
  }
  return word | bit;
}

/// Symbols by length, then number.
struct Sorted {
  std::array<std::uint16_t, kLongestCode + 2> first{};  ///< of each length, in `symbols`
  std::array<std::uint16_t, kMostSymbols> symbols{};

  explicit Sorted(std::span<const std::uint8_t> lengths) {
    for (const std::uint8_t length : lengths) ++first[length + 1U];
    first[1] = 0;  // those without a codeword
    for (std::size_t i = 1; i < first.size(); ++i)
      first[i] = static_cast<std::uint16_t>(first[i] + first[i - 1]);
    std::array<std::uint16_t, kLongestCode + 2> next = first;
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] != 0)
        symbols[next[lengths[symbol]]++] = static_cast<std::uint16_t>(symbol);
    }
  }
  std::size_t count() const { return first.back(); }
  std::size_t count(unsigned length) const {
    return static_cast<std::size_t>(first[length + 1U] - first[length]);
  }
  /// Codewords that are left when all have their length, in those of the longest; negative: too
  /// many.
  int room() const {
    int room = 1;
    for (unsigned length = 1; length <= kLongestCode; ++length)
      room = 2 * room - static_cast<int>(count(length));
    return room;
  }
};

/// How many bits the table needs in which codewords of `length` bits and more begin, `left` of
/// that length not being in another one.
unsigned bits_below(const Sorted& sorted, unsigned length, std::size_t left, unsigned bits) {
  unsigned below = length - bits;
  for (std::size_t filled = left; filled < std::size_t{1} << below && length < kLongestCode;) {
    ++below;
    filled = 2 * filled + sorted.count(++length);
  }
  return below;
}

class Filling {
 public:
  Filling(const Sorted& sorted, std::span<const Entry> meanings, unsigned bits,
          std::span<Entry> table)
      : sorted_(sorted), meanings_(meanings), bits_(bits), table_(table) {}

  /// The table of a length is that of one bit less, twice.
  void put_short() {
    for (unsigned length = 1; length <= bits_; ++length) {
      const auto half = static_cast<std::ptrdiff_t>(std::size_t{1} << (length - 1));
      if (length > 1) std::copy_n(table_.begin(), half, table_.begin() + half);
      for (std::size_t i = 0; i < sorted_.count(length); ++i) {
        table_[word_] = entry(length);
        advance(length);
      }
    }
  }

  /// A table for each beginning of `bits` bits. False where there is no room.
  bool put_long() {
    used_ = std::size_t{1} << bits_;
    for (unsigned length = bits_ + 1; length <= kLongestCode; ++length) {
      for (std::size_t left = sorted_.count(length); left > 0; --left) {
        if (!is_begun() && !begin(length, left)) return false;
        const Entry here = entry(length);
        const std::size_t step = std::size_t{1} << (length - bits_);
        for (std::size_t place = word_ >> bits_; place < size_; place += step)
          table_[used_ - size_ + place] = here;
        advance(length);
      }
    }
    return true;
  }

 private:
  Entry entry(unsigned length) const { return with_code(meanings_[sorted_.symbols[at_]], length); }
  void advance(unsigned length) {
    ++at_;
    if (at_ < sorted_.count()) word_ = next_codeword(word_, length);
  }
  std::size_t beginning() const { return word_ & ((std::size_t{1} << bits_) - 1); }
  bool is_begun() const { return size_ > 0 && beginning() == begun_; }
  bool begin(unsigned length, std::size_t left) {
    const unsigned below = bits_below(sorted_, length, left, bits_);
    begun_ = beginning();
    size_ = std::size_t{1} << below;
    if (used_ + size_ > table_.size()) return false;
    table_[begun_] = static_cast<Entry>(used_ << 16U) | kLonger | below << 8U | bits_;
    used_ += size_;
    return true;
  }

  const Sorted& sorted_;
  std::span<const Entry> meanings_;
  unsigned bits_;
  std::span<Entry> table_;
  std::size_t word_ = 0;   ///< the codeword that is next
  std::size_t at_ = 0;     ///< its symbol
  std::size_t used_ = 0;   ///< entries, the index and all tables behind it
  std::size_t begun_ = 0;  ///< the beginning whose table is the last
  std::size_t size_ = 0;   ///< of that table; 0: there is none yet
};

}  // namespace

bool fill_table(std::span<const std::uint8_t> lengths, std::span<const Entry> meanings,
                unsigned bits, std::span<Entry> table) {
  const Sorted sorted{lengths};
  const bool single = sorted.count() == 1 && sorted.count(1) == 1;
  if (sorted.count() == 0 || single) {
    const std::span<Entry> index = table.first(std::size_t{1} << bits);
    std::fill(index.begin(), index.end(), with_code(kInvalid, 1));
    for (std::size_t i = 0; single && i < index.size(); i += 2)
      index[i] = with_code(meanings[sorted.symbols[0]], 1);
    return true;
  }
  if (sorted.room() != 0) return false;
  Filling filling{sorted, meanings, bits, table};
  filling.put_short();
  return filling.put_long();
}

}  // namespace mlenv::inflate
