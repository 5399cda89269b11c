#include "base/deflate/matcher.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/deflate.hpp"

namespace mlenv::deflate {
namespace {

/// Zero bytes after the input, so that loads of a word need no check.
constexpr std::size_t kSlack = 16;
/// A match of three bytes that lies further back costs more than three literals.
constexpr std::uint32_t kFarForThree = 4096;

/// Odd numbers with well mixed bits: 2^32 divided by the golden ratio, and one of xxHash's primes.
constexpr std::uint32_t kMultiplier3 = 0x9E3779B1U;
constexpr std::uint32_t kMultiplier4 = 0x85EBCA77U;

std::uint32_t load32(const std::uint8_t* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::big ? __builtin_bswap32(word) : word;
}

std::uint64_t load64(const std::uint8_t* bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::big ? __builtin_bswap64(word) : word;
}

/// How many bytes agree, at most `limit`; the first `known` are known to.
std::uint32_t common_length(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t known,
                            std::uint32_t limit) {
  std::uint32_t length = known;
  while (length < limit) {
    const std::uint64_t difference = load64(a + length) ^ load64(b + length);
    if (difference != 0) {
      length += static_cast<std::uint32_t>(std::countr_zero(difference)) / 8;
      break;
    }
    length += 8;
  }
  return std::min(length, limit);
}

/// Distance to the position whose low 16 bits are `low`, if it lies in the window; else 0.
std::uint32_t distance_to(std::size_t position, std::uint16_t low) {
  const std::uint32_t distance = (static_cast<std::uint32_t>(position) - low) & 0xFFFFU;
  return distance <= kWindow && distance <= position ? distance : 0;
}

}  // namespace

Matcher::Matcher() : input_(kChunkBytes + kSlack) {}

void Matcher::start(ByteView input) {
  size_ = input.size();
  if (size_ > 0) std::memcpy(input_.data(), input.data(), size_);
  std::fill_n(input_.begin() + static_cast<std::ptrdiff_t>(size_), kSlack, std::uint8_t{0});
  last3_.fill(0);
  last4_.fill(0);
  previous_.fill(0);
}

inline Matcher::Heads Matcher::enter(std::size_t position) {
  const std::uint32_t word = load32(input_.data() + position);
  const std::uint32_t hash3 = ((word & 0xFFFFFFU) * kMultiplier3) >> (32U - kHash3Bits);
  const std::uint32_t hash4 = (word * kMultiplier4) >> (32U - kHash4Bits);
  const auto low = static_cast<std::uint16_t>(position);
  const Heads heads{last3_[hash3], last4_[hash4]};
  last3_[hash3] = low;
  last4_[hash4] = low;
  previous_[position % kWindow] = heads.four;
  // The next position is almost always the next one asked for.
  const std::uint32_t next = load32(input_.data() + position + 1);
  __builtin_prefetch(&last4_[(next * kMultiplier4) >> (32U - kHash4Bits)], 1);
  __builtin_prefetch(&last3_[((next & 0xFFFFFFU) * kMultiplier3) >> (32U - kHash3Bits)], 1);
  return heads;
}

Match Matcher::find_three(std::size_t position, std::uint16_t head, std::uint32_t limit) const {
  const std::uint32_t distance = distance_to(position, head);
  if (distance == 0 || distance > kFarForThree) return {};
  const std::uint8_t* here = input_.data() + position;
  const std::uint8_t* there = here - distance;
  if (((load32(here) ^ load32(there)) & 0xFFFFFFU) != 0) return {};
  return {common_length(here, there, 3, limit), distance};
}

Match Matcher::find(std::size_t position, std::uint32_t longer_than, Effort effort) {
  const Heads heads = enter(position);
  const auto limit = static_cast<std::uint32_t>(std::min(kMaxMatch, size_ - position));
  if (limit <= longer_than || limit < 4) return {};
  const std::uint32_t enough = std::min(effort.enough, limit);
  const std::uint8_t* here = input_.data() + position;
  const std::uint32_t first_word = load32(here);
  Match best;
  std::uint32_t best_length = longer_than;
  if (longer_than < 3) {
    best = find_three(position, heads.three, limit);
    best_length = std::max(best.length, std::uint32_t{3});
    if (best.length >= enough) return best;
  }
  // Distances must grow along a chain and stay within the window and the input. From one candidate
  // to the next there is a load and nothing else to wait for.
  const auto window = static_cast<std::uint32_t>(std::min(kWindow, position));
  const auto here_low = static_cast<std::uint32_t>(position);
  std::uint32_t last_word = load32(here + best_length - 3);
  std::uint32_t candidate = heads.four;
  std::uint32_t distance = (here_low - candidate) & 0xFFFFU;
  if (distance - 1 >= window) return best;
  for (unsigned tries = effort.candidates;;) {
    candidate = previous_[candidate % kWindow];
    const std::uint8_t* there = here - distance;
    if (load32(there + best_length - 3) == last_word && load32(there) == first_word) {
      const std::uint32_t length = common_length(here, there, 4, limit);
      if (length > best_length) {
        best = {length, distance};
        best_length = length;
        if (length >= enough) break;
        last_word = load32(here + best_length - 3);
      }
    }
    const std::uint32_t next = (here_low - candidate) & 0xFFFFU;
    if (--tries == 0 || next - distance - 1 >= window - distance) break;
    distance = next;
  }
  return best;
}

void Matcher::skip(std::size_t first, std::size_t last) {
  for (std::size_t position = first; position < last; ++position) (void)enter(position);
}

}  // namespace mlenv::deflate
