#pragma once
// The kernel of virtual machines: which package it is, locked in the store, and the package itself.
#include <string>

#include "cli/ui.hpp"
#include "runner/vm/kernel.hpp"

namespace mlenv::cli {

struct LockedKernel {
  VmKernel kernel;
  std::string lock_digest;  ///< of the lock's file, `sha256:…`
};

/// Of that suite of Debian: as STORE/vm/SUITE.lock says, which is made where there is none, by the
/// same resolver as recipes' locks. Without the network where lock and kernel are in the store.
LockedKernel vm_kernel(Ui& ui, const std::string& suite);

/// The suite that an image says it is of, in the text of its `/etc/os-release`; another
/// distribution's gets the newest that is known.
std::string kernel_suite(std::string_view os_release);

}  // namespace mlenv::cli
