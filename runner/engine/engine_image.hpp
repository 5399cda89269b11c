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
Image bare_image(const Image& image);

/// Hands it over, bare, unless it is there with these very layers, and sets `engine.image`. Throws
/// `engine-image` where the engine does not take it.
void bring_image(const Store& store, const Image& image, ContainerEngine& engine,
                 Progress& progress);

}  // namespace mlenv
