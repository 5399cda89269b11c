#pragma once
// The processor's vector registers between two libraries.

namespace mlenv {

/// Clears the upper halves (VZEROUPPER), which libraries with AVX code may leave in use: glibc's
/// memory functions and ISA-L do. As long as they are, each older instruction has to merge with
/// them, and the SHA instructions have only the older encoding: measured, they take twice to three
/// times as long. Call it before hashing; it costs nothing.
inline void clear_upper_halves() {
#if defined(__x86_64__)
  static const bool has_avx = __builtin_cpu_supports("avx") != 0;
  if (has_avx) asm volatile("vzeroupper" ::: "memory");
#endif
}

}  // namespace mlenv
