#pragma once
// What hooks, and programs that gain rights, make in the container of an ordinary user who has
// several ids there is another id's on the disk, which only a namespace of the same ids can remove.
#include "base/files.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

/// Gives everything in a writable layer to the caller, shown here as `user`: the layer is then like
/// the image's own files, and can be removed from outside. As root of the namespace, when nothing
/// runs in the container any more. Goes on where one thing cannot be given.
void give_back(const fs::path& upper, const ContainerUser& user) noexcept;

}  // namespace mlenv
