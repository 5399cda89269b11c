#pragma once
// `--runtime vm` of a run: what it needs, found, made or fetched.
#include <string>
#include <vector>

#include "cli/ui.hpp"
#include "images/oci.hpp"
#include "runner/cdi/gpus.hpp"
#include "runner/local/run.hpp"

namespace mlenv::cli {

inline constexpr std::string_view kVmRuntime = "vm";

/// Throws `vm-option` (usage) for what a virtual machine does not give: nothing of that is ignored.
/// `network` is the word of `--network`; empty: none. Sets what it is without one.
void check_vm_options(JobOptions& options, const std::string& network);
/// The same for `--gpus` and `--device`.
void check_vm_devices(const GpuChoice& gpus, const std::vector<CdiName>& devices);

/// The disk of the image, the kernel (locked, fetched and unpacked once), QEMU, memory and
/// processors. `run.trees` are there, and `run.options` are as they will be. Throws `no-vm`,
/// `vm-option`, and what fetching throws.
VmSpec vm_for(Ui& ui, const LocalRun& run, const Image& image);

}  // namespace mlenv::cli
