#pragma once
// GPU architectures, and which device code runs on which of them (CUDA C++ Programming Guide,
// "Application Compatibility" and "Feature Set Compiler Targets"; read in November 2026).
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "images/inspect/device_code.hpp"

namespace mlenv {

/// Whether code for `code` runs on a GPU of architecture `gpu` (`sm_86`); of PTX as far as the
/// driver can read it.
bool runs_on(const DeviceCode& code, const DeviceCode& gpu);

enum class Coverage {
  none,     ///< `no kernel image is available for execution on the device`
  by_ptx,   ///< compiled at each start, by drivers as new as the CUDA release
  complete  ///< machine code
};
Coverage coverage(const std::vector<DeviceCode>& codes, const DeviceCode& gpu);

/// Every architecture that is or was a GPU's: `sm_35` … `sm_121`.
std::span<const std::string_view> gpu_architectures();

/// What somebody may have meant: `sm_90` for `sm90`, `9.0`, `compute_90` and `H100`; empty for
/// nothing near.
std::string meant_architecture(std::string_view text);

}  // namespace mlenv
