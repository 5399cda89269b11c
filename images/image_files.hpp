#pragma once
// Chosen files of an image, as a container of it finds them: later layers replace and hide what
// earlier ones hold (image-spec layer.md, "Whiteouts").
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/progress.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Paths relative to the image's root.
using Wanted = std::function<bool(std::string_view path)>;

/// Contents by path; a link is there with no content. Paths are the layers' own: what is reached
/// through a link to a folder is found at its true place alone. Layers that are unpacked are read
/// from their trees, the others from their blobs, in parallel and verified. Throws `too-large` for
/// a file over 64 MiB, and what reading a layer throws.
std::map<std::string, std::string> image_files(const Store& store, const Image& image,
                                               const Wanted& wanted, Progress& progress);

}  // namespace mlenv
