#pragma once
// The rules' functions, a file for each subject: each looks at a case and says what it finds. The
// table that names them is rules.cpp.
#include "runner/check/case.hpp"

namespace mlenv {

// rules_driver.cpp
void driver_too_old(Case& here);
void minor_version_compatibility(Case& here);
void ptx_too_new(Case& here);
void forward_compatibility(Case& here);
void forward_compatibility_refused(Case& here);
void driver_below_recipe(Case& here);
// rules_driver_state.cpp
void driver_mismatch(Case& here);
void driver_not_loaded(Case& here);
void device_nodes_missing(Case& here);
void cuda_init_fails(Case& here);
void fabric_manager_missing(Case& here);
void persistence_off(Case& here);
// rules_requirement.cpp
void requirement_unmet(Case& here);
// rules_code.cpp
void no_device_code(Case& here);
void xla_too_old(Case& here);
void ptx_only(Case& here);
void recipe_gpus(Case& here);
// rules_gpu.cpp
void no_gpu(Case& here);
void cpu_only_framework(Case& here);
void mig(Case& here);
void wsl(Case& here);
// rules_container.cpp
void cdi_missing(Case& here);
void gpus_after_daemon_reload(Case& here);
void namespaces_forbidden(Case& here);
void shared_memory_small(Case& here);
void open_files_low(Case& here);
void user_without_name(Case& here);
void disk_space(Case& here);
// rules_userland.cpp
void architecture_differs(Case& here);
void library_missing(Case& here);
void import_fails(Case& here);
void symbol_version_missing(Case& here);
void cpu_instructions(Case& here);
void kernel_too_old(Case& here);
// rules_image.cpp
void two_cuda_runtimes(Case& here);
void wasted_bytes(Case& here);
// rules_network.cpp
void memlock_low(Case& here);
void host_name_loopback(Case& here);
void interface_choice(Case& here);
void gpudirect_missing(Case& here);
void clock_unsynchronised(Case& here);

}  // namespace mlenv
