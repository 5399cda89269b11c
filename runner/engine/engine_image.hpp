#pragma once
// An image of the store as docker or podman has it: under a name that is made of its digest, so
// that it is handed over once, and again when somebody has removed it there.
#include "base/progress.hpp"
#include "images/store.hpp"
#include "runner/engine/engine.hpp"

namespace mlenv {

/// `localhost/mlenv:HEX`
std::string engine_image_name(const Digest& manifest);

/// Its layers under no settings and annotations. mlenv says to the engine itself what it needs of
/// those: an engine, its hooks and its OCI runtime heed more, such as `NVIDIA_VISIBLE_DEVICES`,
/// labels for capabilities, and annotations by which a runtime writes files of this machine.
/// `Over::device_folder`: with a layer above them (`device_folder_tar`).
enum class Over { nothing, device_folder };
Image bare_image(const Image& image, Over over = Over::nothing);

/// A tar of a folder `dev`, which takes the place of a link of that name below it. runc makes its
/// links in a container's `/dev` by that path on this machine, and would make them, and remove a
/// file of theirs, wherever on this machine an image's link leads. Docker puts such a folder there
/// by itself; podman does not.
std::string device_folder_tar();

/// Hands it over, bare, unless it is there with these very layers, and sets `engine.image`. Throws
/// `engine-image` where the engine does not take it.
void bring_image(const Store& store, const Image& image, ContainerEngine& engine,
                 Progress& progress);

}  // namespace mlenv
