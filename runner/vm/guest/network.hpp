#pragma once
// The guest's network: addresses are those of QEMU's user network, which are always the same.
#include <string>

namespace mlenv::vm {

void raise_loopback();
/// Why not; empty: it is done.
std::string raise_network();

}  // namespace mlenv::vm
