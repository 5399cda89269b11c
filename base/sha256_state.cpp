#include "base/sha256_state.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>

#include "base/vector_registers.hpp"

// The state must be seen to be advanced by two: the older interface shows it, EVP does not.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace mlenv {
namespace {

constexpr std::size_t kBlock = SHA256_CBLOCK;

/// Of a message, from the start of a block on.
struct Piece {
  SHA256_CTX* state;
  const std::byte* data;
};

#if defined(__x86_64__)

/// FIPS 180-4 §4.2.2.
alignas(16) constexpr std::array<std::uint32_t, 64> kRoundConstants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

bool has_sha_instructions() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return false;
  const bool has_shuffles = (ecx & bit_SSSE3) != 0 && (ecx & bit_SSE4_1) != 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return has_shuffles && (ebx & bit_SHA) != 0;
}

/// The eight words as the instructions keep them (Intel SDM, SHA256RNDS2), and the last 16 words of
/// the message schedule, four a register.
struct Lane {
  SHA256_CTX* state;
  const std::byte* data;
  __m128i abef{};
  __m128i cdgh{};
  __m128i abef_before{};
  __m128i cdgh_before{};
  __m128i input{};
  __m128i w[4]{};  // NOLINT(*-avoid-c-arrays): std::array drops the vector's attributes
};

#define MLENV_SHA_TARGET __attribute__((target("sha,sse4.1,ssse3"), always_inline)) inline

MLENV_SHA_TARGET void load(Lane& lane) {
  const auto* words = reinterpret_cast<const __m128i*>(lane.state->h);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  lane.abef = _mm_alignr_epi8(cdab, efgh, 8);
  lane.cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
}

MLENV_SHA_TARGET void store(const Lane& lane) {
  auto* words = reinterpret_cast<__m128i*>(lane.state->h);
  const __m128i feba = _mm_shuffle_epi32(lane.abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(lane.cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

/// What rounds 4 * `four` and the three after it take in.
MLENV_SHA_TARGET void schedule(Lane& lane, std::size_t four) {
  __m128i& now = lane.w[four % 4];
  if (four < 4) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    const auto* at = reinterpret_cast<const __m128i*>(lane.data + 16 * four);
    now = _mm_shuffle_epi8(_mm_loadu_si128(at), big_endian);
  } else {
    const __m128i last = lane.w[(four + 3) % 4];
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, lane.w[(four + 1) % 4]),
                                      _mm_alignr_epi8(last, lane.w[(four + 2) % 4], 4));
    now = _mm_sha256msg2_epu32(sum, last);
  }
  const auto* constants = reinterpret_cast<const __m128i*>(&kRoundConstants[4 * four]);
  lane.input = _mm_add_epi32(now, _mm_load_si128(constants));
}

MLENV_SHA_TARGET void two_rounds(Lane& lane) {
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, lane.input);
}

MLENV_SHA_TARGET void two_more(Lane& lane) {
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(lane.input, 0x0E));
}

MLENV_SHA_TARGET void begin_block(Lane& lane) {
  lane.abef_before = lane.abef;
  lane.cdgh_before = lane.cdgh;
}

MLENV_SHA_TARGET void end_block(Lane& lane) {
  lane.abef = _mm_add_epi32(lane.abef, lane.abef_before);
  lane.cdgh = _mm_add_epi32(lane.cdgh, lane.cdgh_before);
  lane.data += kBlock;
}

/// All through `blocks` blocks each, their rounds taking turns.
template <typename... Lanes>
MLENV_SHA_TARGET void in_turns(std::size_t blocks, Lanes&... lanes) {
  (load(lanes), ...);
  for (; blocks > 0; --blocks) {
    (begin_block(lanes), ...);
#pragma GCC unroll 16
    for (std::size_t four = 0; four < 16; ++four) {
      if constexpr (sizeof...(lanes) == 2) {
        (schedule(lanes, four), ...);
        (two_rounds(lanes), ...);
        (two_more(lanes), ...);
      } else {
        // Measured on Zen 5: 3.5 GB/s in this order, 3.4 in the other; of two, 3.0 and 3.1.
        ((schedule(lanes, four), two_rounds(lanes), two_more(lanes)), ...);
      }
    }
    (end_block(lanes), ...);
  }
  (store(lanes), ...);
}

// Lanes are local, so that they live in registers.
__attribute__((target("sha,sse4.1,ssse3"))) void compress(Piece first, Piece second,
                                                          std::size_t blocks) {
  Lane a{.state = first.state, .data = first.data};
  Lane b{.state = second.state, .data = second.data};
  in_turns(blocks, a, b);
}

__attribute__((target("sha,sse4.1,ssse3"))) void compress(Piece first, Piece second, Piece third,
                                                          std::size_t blocks) {
  Lane a{.state = first.state, .data = first.data};
  Lane b{.state = second.state, .data = second.data};
  Lane c{.state = third.state, .data = third.data};
  in_turns(blocks, a, b, c);
}

#undef MLENV_SHA_TARGET

#else

bool has_sha_instructions() { return false; }
void compress(Piece, Piece, std::size_t) {}
void compress(Piece, Piece, Piece, std::size_t) {}

#endif

void update(SHA256_CTX& state, ByteView data) {
  if (data.empty()) return;
  clear_upper_halves();
  SHA256_Update(&state, data.data(), data.size());
}

/// So many bytes of `data` bring the state to the start of a block.
ByteView fill_block(SHA256_CTX& state, ByteView data) {
  if (state.num == 0) return data;
  const std::size_t count = std::min(data.size(), kBlock - state.num);
  update(state, data.first(count));
  return data.subspan(count);
}

/// The message's length in bits, as the padding will hold it.
void add_length(SHA256_CTX& state, std::uint64_t size_bytes) {
  const std::uint64_t bits =
      ((static_cast<std::uint64_t>(state.Nh) << 32U) | state.Nl) + size_bytes * 8;
  state.Nl = static_cast<SHA_LONG>(bits);
  state.Nh = static_cast<SHA_LONG>(bits >> 32U);
}

}  // namespace

struct Sha256State::Context : SHA256_CTX {};

Sha256State::Sha256State() : context_(std::make_unique<Context>()) { SHA256_Init(context_.get()); }
Sha256State::~Sha256State() = default;

void Sha256State::start_again() { SHA256_Init(context_.get()); }

void Sha256State::write(ByteView data) { update(*context_, data); }

bool Sha256State::goes_in_step() {
  static const bool in_step = has_sha_instructions();
  return in_step;
}

void Sha256State::write_together(std::span<const Part> parts) {
  std::array<Part, kTogether> rest{};
  std::copy(parts.begin(), parts.end(), rest.begin());
  const std::span<Part> all = std::span(rest).first(parts.size());
  if (goes_in_step() && all.size() > 1) {
    for (Part& part : all) part.bytes = fill_block(*part.state->context_, part.bytes);
    clear_upper_halves();
    // Ever fewer of them, until one is left.
    while (write_blocks(all)) {
    }
  }
  for (const Part& part : all) part.state->write(part.bytes);
}

/// As many blocks of each that has any as the shortest of them has; false where fewer than two do.
bool Sha256State::write_blocks(std::span<Part> parts) {
  std::array<Part*, kTogether> long_enough{};
  std::size_t count = 0;
  std::size_t blocks = SIZE_MAX;
  for (Part& part : parts) {
    if (part.bytes.size() < kBlock) continue;
    long_enough[count++] = &part;
    blocks = std::min(blocks, part.bytes.size() / kBlock);
  }
  if (count < 2) return false;
  const auto piece = [&](std::size_t i) {
    return Piece{long_enough[i]->state->context_.get(), long_enough[i]->bytes.data()};
  };
  if (count == 2) {
    compress(piece(0), piece(1), blocks);
  } else {
    compress(piece(0), piece(1), piece(2), blocks);
  }
  for (std::size_t i = 0; i < count; ++i) {
    add_length(*long_enough[i]->state->context_, blocks * kBlock);
    long_enough[i]->bytes = long_enough[i]->bytes.subspan(blocks * kBlock);
  }
  return true;
}

Digest Sha256State::finish() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> raw{};
  SHA256_Final(raw.data(), context_.get());
  return Digest::from_raw(raw);
}

}  // namespace mlenv
