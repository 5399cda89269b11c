#pragma once
// A name and a folder of their own for whoever the job runs as.
#include "runner/local/image_root.hpp"
#include "runner/local/user.hpp"

namespace mlenv {

/// Adds the user (and group) to the image's /etc/passwd (/etc/group) where their number is not in
/// it, and sees to it that their home is a folder that they may write: theirs where it is so or is
/// absent, which is then made, else /home/USER-UID, so that a cache below HOME works for everybody.
/// Sets `user.home`. Throws `image-root`.
void give_home(ContainerUser& user, const ImageRoot& image);

}  // namespace mlenv
