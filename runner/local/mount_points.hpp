#pragma once
// Where an ordinary user's container has several ids, what the runtime makes is another id's, and
// nothing that the caller could remove again. So what it would make is made before, as the caller.
#include "runner/local/bundle.hpp"
#include "runner/local/image_root.hpp"

namespace mlenv {

/// Folders and files on which the bundle mounts, and the folder that the command starts in, where
/// they are absent, with the folders above them; links of the image and of the person's folders
/// lead where they lead in the container. What a folder in memory covers gets that one's mode.
/// Throws `bad-mount` (usage) for what cannot be made.
void make_mount_points(const Bundle& bundle, const ImageRoot& image);

/// The folder that the command starts in, where it is absent from the image: whoever the command is
/// may not make it. One in a mount, or that cannot be seen from here, is left to the command.
void make_workdir(const Bundle& bundle, const ImageRoot& image);

}  // namespace mlenv
