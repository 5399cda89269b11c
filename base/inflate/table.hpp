#pragma once
// Tables that tell a symbol from the next bits of a DEFLATE stream (RFC 1951 §3.2.2): one for the
// short codewords, and behind it one for each longer beginning.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mlenv::inflate {

inline constexpr unsigned kLongestCode = 15;

/// What a codeword stands for, in one word:
///   bits 0–7   how many bits it takes, extra bits included
///   bits 8–11  how many of them are the codeword
///   bit 12     a literal          bit 13  the end of the block
///   bit 14     a longer codeword  bit 15  no codeword at all
///   bits 16–31 the literal, or the first length or distance; of a longer codeword: where its table
///              lies, its index's bits instead of the codeword's
using Entry = std::uint32_t;
inline constexpr Entry kLiteral = 1U << 12U;
inline constexpr Entry kEnd = 1U << 13U;
inline constexpr Entry kLonger = 1U << 14U;
inline constexpr Entry kInvalid = 1U << 15U;
inline constexpr Entry kOther = kEnd | kLonger | kInvalid;

inline unsigned bits_of(Entry entry) { return entry & 0xFFU; }
inline unsigned code_bits_of(Entry entry) { return entry >> 8U & 0xFU; }
inline unsigned value_of(Entry entry) { return entry >> 16U; }

inline constexpr unsigned kLitLenBits = 11;
inline constexpr unsigned kDistanceBits = 8;
inline constexpr unsigned kCodeLengthBits = 7;
/// Room for any code, longer codewords' tables included: never more than twice 2^15 would be
/// (a complete code of 288 or 30 symbols needs far fewer; too few is an error, not an overrun).
inline constexpr std::size_t kLitLenRoom = 2400;
inline constexpr std::size_t kDistanceRoom = 512;
inline constexpr std::size_t kCodeLengthRoom = 128;

/// Fills `table` (its first 2^`bits` entries are the index) for the code in which symbol `s` has
/// `lengths[s]` bits, 0 for none, and means `meanings[s]`, an entry without bits of the codeword.
/// False where the code is over-subscribed, or incomplete; one codeword alone of one bit is fine,
/// as is none at all (then every entry is kInvalid).
bool fill_table(std::span<const std::uint8_t> lengths, std::span<const Entry> meanings,
                unsigned bits, std::span<Entry> table);

}  // namespace mlenv::inflate
