#pragma once
// What hooks of CDI would do to a container, done by its keeper.
#include "runner/engine/keeper_client.hpp"
#include "runner/engine/known_hooks.hpp"
#include "runner/local/image_root.hpp"

namespace mlenv {

/// Before the command. Folders that its variable LD_LIBRARY_PATH must name, since the dynamic
/// linker's cache cannot be made (`fixed`: the image cannot be written). Throws `no-device` for
/// what cannot be done in this image.
std::vector<std::string> do_work_of_hooks(const HookWork& work, Keeper& keeper,
                                          const ImageRoot& image, bool fixed);

}  // namespace mlenv
