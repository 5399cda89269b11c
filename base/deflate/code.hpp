#pragma once
// Length-limited canonical Huffman codes (RFC 1951 §3.2.2). Ties are broken by symbol number, so
// that frequencies alone decide the code.
#include <cstdint>
#include <span>

namespace mlenv::deflate {

/// Sets `lengths[s]` for each symbol: 0 where `frequencies[s]` is 0, else at most `limit` (15 or
/// 7). The code is complete: where fewer than two symbols occur, the lowest others join with
/// length 1.
void code_lengths(std::span<const std::uint32_t> frequencies, unsigned limit,
                  std::span<std::uint8_t> lengths);

/// The canonical codewords for `lengths`, bits reversed as the stream wants them.
void codewords(std::span<const std::uint8_t> lengths, std::span<std::uint16_t> words);

}  // namespace mlenv::deflate
