#include "runner/facts/cpu_flags.hpp"

#include <algorithm>
#include <array>

namespace mlenv {
namespace {

// Names of the kernel's arch/x86/include/asm/cpufeatures.h and arch/arm64/kernel/cpuinfo.c that
// libraries in wheels (NumPy, oneDNN, OpenBLAS, PyTorch's own) choose their kernels by.
constexpr std::array<std::string_view, 37> kWatched = {"aes",         "amx_bf16",
                                                       "amx_int8",    "amx_tile",
                                                       "asimd",       "asimddp",
                                                       "asimdhp",     "atomics",
                                                       "avx",         "avx2",
                                                       "avx512_bf16", "avx512_fp16",
                                                       "avx512_vnni", "avx512_vpopcntdq",
                                                       "avx512bw",    "avx512cd",
                                                       "avx512dq",    "avx512f",
                                                       "avx512ifma",  "avx512vbmi",
                                                       "avx512vl",    "avx_vnni",
                                                       "bf16",        "bmi1",
                                                       "bmi2",        "f16c",
                                                       "fma",         "gfni",
                                                       "i8mm",        "pclmulqdq",
                                                       "popcnt",      "sha_ni",
                                                       "sse4_1",      "sse4_2",
                                                       "ssse3",       "sve",
                                                       "sve2"};

// x86-64 psABI, "Micro-architecture levels", in /proc/cpuinfo's names (pni: SSE3, abm: LZCNT).
constexpr std::array<std::string_view, 7> kLevel2 = {"cx16",   "lahf_lm", "popcnt", "pni",
                                                     "sse4_1", "sse4_2",  "ssse3"};
constexpr std::array<std::string_view, 9> kLevel3 = {"abm",  "avx", "avx2",  "bmi1", "bmi2",
                                                     "f16c", "fma", "movbe", "xsave"};
constexpr std::array<std::string_view, 5> kLevel4 = {"avx512bw", "avx512cd", "avx512dq", "avx512f",
                                                     "avx512vl"};

/// All of AMD64's own.
constexpr std::array<std::string_view, 8> kLevel1 = {"cmov", "cx8",     "fpu", "fxsr",
                                                     "mmx",  "syscall", "sse", "sse2"};

template <std::size_t N>
bool has_flag(const std::array<std::string_view, N>& flags, std::string_view flag) {
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

template <std::size_t N>
bool has_all(const std::vector<std::string_view>& flags,
             const std::array<std::string_view, N>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  });
}

}  // namespace

std::span<const std::string_view> watched_cpu_flags() { return kWatched; }

std::string cpu_level_of(const std::vector<std::string_view>& flags) {
  if (!has_all(flags, kLevel2)) return "x86-64-v1";
  if (!has_all(flags, kLevel3)) return "x86-64-v2";
  return has_all(flags, kLevel4) ? "x86-64-v4" : "x86-64-v3";
}

bool level_has_flag(std::string_view level, std::string_view flag) {
  if (!level.starts_with("x86-64-v")) return false;
  const char number = level.back();
  return has_flag(kLevel1, flag) || (number >= '2' && has_flag(kLevel2, flag)) ||
         (number >= '3' && has_flag(kLevel3, flag)) || (number >= '4' && has_flag(kLevel4, flag));
}

}  // namespace mlenv
