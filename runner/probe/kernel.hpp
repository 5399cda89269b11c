#pragma once
// The kernel that every GPU must compute right, as PTX, which the driver compiles when it is
// loaded: so that no CUDA toolkit is needed to build the probe.
//
// A driver reads PTX up to the version of its own CUDA and refuses newer (error 222), and PTX runs
// on its architecture and all later ones. PTX 6.0 is that of CUDA 9.0, older than every driver that
// mlenv knows anything about (11.0 and later), and sm_50 is older than every architecture that they
// still serve: the kernel runs wherever anything does. tests/e2e/probe.sh has ptxas make machine
// code of it for today's.
#include <cstdint>
#include <string_view>

namespace mlenv::probe {

inline constexpr const char* kKernelName = "mlenv_probe";
inline constexpr std::uint32_t kFactor = 1664525;

/// What it makes of the word at `index`: every thread's own index, a load, a store, arithmetic.
constexpr std::uint32_t computed(std::uint32_t word, std::uint32_t index, std::uint32_t seed) {
  return word * kFactor + (index ^ seed);
}

inline constexpr const char* kKernel = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry mlenv_probe(.param .u64 data, .param .u32 count, .param .u32 seed)
{
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %d<5>;
  ld.param.u64 %d1, [data];
  ld.param.u32 %r1, [count];
  ld.param.u32 %r2, [seed];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra done;
  cvta.to.global.u64 %d2, %d1;
  mul.wide.u32 %d3, %r6, 4;
  add.u64 %d4, %d2, %d3;
  ld.global.u32 %r7, [%d4];
  xor.b32 %r8, %r6, %r2;
  mad.lo.u32 %r7, %r7, 1664525, %r8;
  st.global.u32 [%d4], %r7;
done:
  ret;
}
)";

}  // namespace mlenv::probe
