#pragma once
// A development container (containers.dev) of an image: two files that VS Code and the devcontainer
// CLI read, for Docker or podman.
#include <optional>
#include <string>

#include "images/oci.hpp"

namespace mlenv {

struct DevContainer {
  std::string name;                   ///< for people, and of the engine's image
  std::optional<std::string> recipe;  ///< path from the project's folder; its image is built anew
  std::string digest;                 ///< of the image, without a recipe
  ImageConfig image;
  std::optional<std::string> python;  ///< interpreter that the editor is to use
  std::string shell;                  ///< of the user
  bool has_kernel = false;            ///< notebooks can be run
  bool uses_gpus = false;             ///< where the host has some
};

/// The user in whose name the editor works, with the caller's number: the image's own, or `dev`
/// where that is root or has no name.
std::string devcontainer_user(const DevContainer& container);

/// `.devcontainer/devcontainer.json`. Throws `bad-image` for a user or folder of the image's that
/// neither file can have, as the other two do for that user. It names an image that the engine gets
/// from the script.
std::string devcontainer_json(const DevContainer& container);

/// `.devcontainer/image.sh`, which the former calls before a start: has mlenv build the image, or
/// take it from the store, and hands it to the engine, with that user, all of it once.
std::string devcontainer_script(const DevContainer& container);

}  // namespace mlenv
