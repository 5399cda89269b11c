#pragma once
// How large a virtual machine is when it travels: its disk and kernel, compressed as layers are.
#include <cstdint>
#include <functional>
#include <string>

#include "images/store.hpp"

namespace mlenv::compare {

struct MachineSize {
  std::uint64_t bytes = 0;
  std::string why;  ///< it is not known
};
/// Of the disk that runs of `image` use, and of the kernels in the store, all compressed with the
/// encoder of layers, in at most so many seconds and until `stopped`, which threads ask. Holes are
/// no bytes.
MachineSize machine_size(const Store& store, const Image& image, double seconds,
                         const std::function<bool()>& stopped);

}  // namespace mlenv::compare
