#pragma once
// What hooks of CDI would do to a container, done by its keeper.
#include "runner/engine/keeper_client.hpp"
#include "runner/engine/known_hooks.hpp"
#include "runner/local/image_root.hpp"

namespace mlenv {

/// How it may be done in this container.
struct HookTerms {
  bool fixed = false;  ///< the image cannot be written
  /// The command runs as the container's root. Else no program of the image does: what it is
  /// nobody has looked at, and root's rights reach the person's folders.
  bool as_root = false;
  std::vector<std::string> nodes;  ///< device files, as the container has them
  int socket = -1;                 ///< hangs up when mlenv is gone
  int signals = -1;                ///< readable: nobody wants to wait any longer; -1: none
};

/// Before the command. Folders that its variable LD_LIBRARY_PATH must name, since the dynamic
/// linker's cache is not made. Throws `no-device` for what cannot be done in this image.
std::vector<std::string> do_work_of_hooks(const HookWork& work, Keeper& keeper,
                                          const ImageRoot& image, const HookTerms& terms);

/// Throws `no-device` where the command's variables ask for limits that only a hook can set.
void require_no_memory_limits(const HookWork& work, const std::vector<std::string>& environment);

/// The driver's settings (JSON) by which EGL and Vulkan use the GPUs whose device files have these
/// minor numbers; empty: there is nothing to say.
std::string application_profile(const std::vector<unsigned>& minors);

}  // namespace mlenv
