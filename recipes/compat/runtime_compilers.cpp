#include "recipes/compat/runtime_compilers.hpp"

#include <algorithm>
#include <array>

#include "recipes/resolve/versions.hpp"

namespace mlenv {
namespace {

struct CompilerRow {
  std::string_view framework;
  int major;                ///< of the first compute capability that it does not know
  std::string_view before;  ///< releases older than this
  CompilerGap gap;
};

// JAX: wheels of 0.4.30 compile for `sm_90a` at most, which ptxas refuses for newer GPUs ("cannot
// be compiled to future architecture"); 0.4.38 is the first that people run on B200 and RTX 50
// with, and 0.6.2's wheels hold code for sm_100 and sm_120 (cuobjdump). TensorFlow: wheels up
// to 2.20 fail on compute capability 12.0 with CUDA_ERROR_INVALID_PTX (tensorflow 89272, 99592,
// 101746). Those of 2.21 are built with a CUDA whose PTX is 8.5, and LLVM wants 8.6 for sm_100
// and 8.7 for sm_120 ("PTX version 8.5 does not support target", tensorflow 111958, openxla 47978).
constexpr std::array<CompilerRow, 2> kCompilers = {
    {{"jax", 10, "0.4.38", {"0.4.38", "JAX, reports of ptxas for sm_90a on Blackwell"}},
     {"tensorflow", 10, "2.22", {"", "TensorFlow, issues 89272 and 111958"}}}};

}  // namespace

std::optional<CompilerGap> compiler_gap(std::string_view framework, std::string_view version,
                                        const DeviceCode& gpu) {
  const auto row = std::find_if(kCompilers.begin(), kCompilers.end(), [&](const CompilerRow& one) {
    return one.framework == framework && gpu.major >= one.major && is_older(version, one.before);
  });
  if (row == kCompilers.end()) return std::nullopt;
  return row->gap;
}

}  // namespace mlenv
