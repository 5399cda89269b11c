#include "base/sha256_state.hpp"

#include <algorithm>
#include <array>
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
  __m128i abef;
  __m128i cdgh;
  __m128i abef_before;
  __m128i cdgh_before;
  __m128i w[4];  // NOLINT(*-avoid-c-arrays): std::array drops the vector's attributes
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

/// Rounds 4 * `four` and the three after it.
MLENV_SHA_TARGET void four_rounds(Lane& lane, std::size_t four) {
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
  const __m128i input = _mm_add_epi32(now, _mm_load_si128(constants));
  lane.cdgh = _mm_sha256rnds2_epu32(lane.cdgh, lane.abef, input);
  lane.abef = _mm_sha256rnds2_epu32(lane.abef, lane.cdgh, _mm_shuffle_epi32(input, 0x0E));
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

/// Both through `blocks` blocks each, whose rounds take turns.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_two(SHA256_CTX& first, ByteView from,
                                                              SHA256_CTX& second, ByteView and_from,
                                                              std::size_t blocks) {
  Lane a{};
  Lane b{};
  a.state = &first;
  a.data = from.data();
  b.state = &second;
  b.data = and_from.data();
  load(a);
  load(b);
  for (; blocks > 0; --blocks) {
    begin_block(a);
    begin_block(b);
#pragma GCC unroll 16
    for (std::size_t four = 0; four < 16; ++four) {
      four_rounds(a, four);
      four_rounds(b, four);
    }
    end_block(a);
    end_block(b);
  }
  store(a);
  store(b);
}

#undef MLENV_SHA_TARGET

#else

bool has_sha_instructions() { return false; }
void compress_two(SHA256_CTX&, ByteView, SHA256_CTX&, ByteView, std::size_t) {}

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

void Sha256State::write_both(Sha256State& a, ByteView first, Sha256State& b, ByteView second) {
  if (goes_in_step() && !first.empty() && !second.empty()) {
    SHA256_CTX& one = *a.context_;
    SHA256_CTX& other = *b.context_;
    first = fill_block(one, first);
    second = fill_block(other, second);
    const std::size_t blocks = std::min(first.size(), second.size()) / kBlock;
    clear_upper_halves();
    compress_two(one, first, other, second, blocks);
    add_length(one, blocks * kBlock);
    add_length(other, blocks * kBlock);
    first = first.subspan(blocks * kBlock);
    second = second.subspan(blocks * kBlock);
  }
  a.write(first);
  b.write(second);
}

Digest Sha256State::finish() {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> raw{};
  SHA256_Final(raw.data(), context_.get());
  return Digest::from_raw(raw);
}

}  // namespace mlenv
