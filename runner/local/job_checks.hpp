#pragma once
// Whether mounts and folder of a job fit its image: looked at before the container starts, so that
// what is wrong is told in our words, and nothing is made in the person's own folders on the way.
#include "runner/local/bundle.hpp"
#include "runner/local/image_root.hpp"

namespace mlenv {

/// A runtime makes links in the container's `/dev` by its path on this machine: where the image has
/// a link there they would be made, and a file of theirs removed, wherever on this machine it
/// leads. Throws `image-root` where `/dev`, `/proc` or `/sys` is there and is no folder.
void check_system_folders(const ImageRoot& image);

/// Of mounts and folders in memory: throws `bad-mount` (usage) when a folder would lie on a file or
/// a file on a folder, when a target is absent where it cannot be made, or when links lead from it
/// to what is the container's own.
void check_mounts(const Bundle& bundle, const ImageRoot& image);

/// Throws `bad-workdir` (usage) when the job's folder is a file, or is absent and would be made in
/// a mount. One that is absent in the image is made, as Docker does it.
void check_workdir(const Bundle& bundle, const ImageRoot& image);

}  // namespace mlenv
