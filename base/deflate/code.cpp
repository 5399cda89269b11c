// Lengths come from the in-place method of Moffat and Katajainen (1995) over the symbols sorted by
// frequency; codes longer than the limit are then shortened by moving leaves down from shorter
// levels until the Kraft sum is one again.
#include "base/deflate/code.hpp"

#include <algorithm>
#include <array>

#include "base/deflate/symbols.hpp"

namespace mlenv::deflate {
namespace {

constexpr unsigned kMaxLimit = 15;
constexpr std::size_t kMaxSymbols = kLitLenSymbols;

/// Leaves per length; Huffman depths beyond the limit count as the limit.
using LengthCounts = std::array<std::uint32_t, kMaxLimit + 1>;

struct Leaf {
  std::uint32_t frequency = 0;
  std::uint16_t symbol = 0;
};

/// `nodes` holds ascending frequencies; afterwards, the parent index of each internal node.
void build_tree(std::span<std::uint32_t> nodes) {
  const std::size_t count = nodes.size();
  std::size_t leaf = 0;
  std::size_t root = 0;
  auto take = [&](std::size_t next) {
    if (leaf >= count || (root < next && nodes[root] < nodes[leaf])) {
      const std::uint32_t weight = nodes[root];
      nodes[root++] = static_cast<std::uint32_t>(next);
      return weight;
    }
    return nodes[leaf++];
  };
  for (std::size_t next = 0; next + 1 < count; ++next) {
    const std::uint32_t first = take(next);
    const std::uint32_t second = take(next);
    nodes[next] = first + second;
  }
}

LengthCounts count_lengths(std::span<std::uint32_t> nodes, unsigned limit) {
  LengthCounts counts{};
  const std::size_t count = nodes.size();
  // Parents lie above their children, so walking down turns parent indices into depths.
  nodes[count - 2] = 0;
  for (std::size_t i = count - 2; i-- > 0;) nodes[i] = nodes[nodes[i]] + 1;
  std::size_t open = 1;
  std::size_t node = count - 1;
  for (std::uint32_t depth = 0; open > 0; ++depth) {
    std::size_t internal = 0;
    while (node > 0 && nodes[node - 1] == depth) {
      --node;
      ++internal;
    }
    counts[std::min<std::uint32_t>(depth, limit)] += static_cast<std::uint32_t>(open - internal);
    open = 2 * internal;
  }
  return counts;
}

/// Makes the Kraft sum one after depths were clamped: each step lengthens one code and takes the
/// room of one at the limit, which lowers the sum by the smallest unit.
void repair(LengthCounts& counts, unsigned limit) {
  std::uint32_t sum = 0;
  for (unsigned length = 1; length <= limit; ++length) sum += counts[length] << (limit - length);
  for (; sum > 1U << limit; --sum) {
    unsigned length = limit - 1;
    while (counts[length] == 0) --length;
    --counts[length];
    counts[length + 1] += 2;
    --counts[limit];
  }
}

}  // namespace

void code_lengths(std::span<const std::uint32_t> frequencies, unsigned limit,
                  std::span<std::uint8_t> lengths) {
  std::array<Leaf, kMaxSymbols> leaves{};
  std::size_t count = 0;
  for (std::size_t symbol = 0; symbol < frequencies.size(); ++symbol) {
    lengths[symbol] = 0;
    if (frequencies[symbol] == 0) continue;
    leaves[count++] = {frequencies[symbol], static_cast<std::uint16_t>(symbol)};
  }
  if (count < 2) {
    // Some decoders refuse codes of fewer than two symbols.
    const std::size_t present = count == 1 ? leaves[0].symbol : 0;
    lengths[present] = 1;
    lengths[present == 0 ? 1 : 0] = 1;
    return;
  }
  const std::span<Leaf> used = std::span(leaves).first(count);
  std::sort(used.begin(), used.end(), [](const Leaf& a, const Leaf& b) {
    return a.frequency != b.frequency ? a.frequency < b.frequency : a.symbol < b.symbol;
  });
  std::array<std::uint32_t, kMaxSymbols> nodes{};
  for (std::size_t i = 0; i < count; ++i) nodes[i] = used[i].frequency;
  build_tree(std::span(nodes).first(count));
  LengthCounts counts = count_lengths(std::span(nodes).first(count), limit);
  repair(counts, limit);
  std::size_t next = 0;
  for (unsigned length = limit; length > 0; --length) {
    for (std::uint32_t i = 0; i < counts[length]; ++i) {
      lengths[used[next++].symbol] = static_cast<std::uint8_t>(length);
    }
  }
}

void codewords(std::span<const std::uint8_t> lengths, std::span<std::uint16_t> words) {
  LengthCounts counts{};
  for (const std::uint8_t length : lengths) ++counts[length];
  counts[0] = 0;
  LengthCounts next{};
  for (unsigned length = 1; length <= kMaxLimit; ++length) {
    next[length] = (next[length - 1] + counts[length - 1]) << 1U;
  }
  for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    const unsigned length = lengths[symbol];
    std::uint32_t word = length == 0 ? 0 : next[length]++;
    std::uint32_t reversed = 0;
    for (unsigned bit = 0; bit < length; ++bit, word >>= 1U)
      reversed = reversed << 1U | (word & 1U);
    words[symbol] = static_cast<std::uint16_t>(reversed);
  }
}

}  // namespace mlenv::deflate
