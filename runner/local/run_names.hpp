#pragma once
// What a container is called.
#include <string>

namespace mlenv {

/// Of this machine.
std::string host_name();
/// `mlenv-` and digits that no other has.
std::string random_container_name();

}  // namespace mlenv
