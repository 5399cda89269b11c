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

/// What is asked of a file.
enum class Want { nothing, name, content };
/// Paths relative to the image's root.
using Wanted = std::function<Want(std::string_view path)>;

/// Contents by path; of a symbolic link, and where the name alone is wanted, nothing. Paths are the
/// layers' own: what is reached through a link to a folder is found at its true place alone. Layers
/// that are unpacked are read from their trees, the others from their blobs, in parallel and
/// verified. Throws `too-large` for a file over 64 MiB, and where names and contents that must be
/// kept at one time come to more than `most_bytes`; and what reading a layer throws.
inline constexpr std::uint64_t kMostImageFiles = std::uint64_t{512} << 20U;
std::map<std::string, std::string> image_files(const Store& store, const Image& image,
                                               const Wanted& wanted, Progress& progress,
                                               std::uint64_t most_bytes = kMostImageFiles);

}  // namespace mlenv
