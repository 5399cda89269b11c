#pragma once
// All images of a file or folder at once, with the names that they have there: `mlenv load`.
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.hpp"
#include "images/archive_input.hpp"
#include "images/image_index.hpp"
#include "images/reference.hpp"
#include "images/store.hpp"

namespace mlenv {

/// Where images are loaded from.
struct LoadSource {
  /// `-` is standard input; a folder is an OCI layout, a file a tar of one or Docker's archive.
  fs::path path;
  std::string tag;  ///< the one image of that tag or name; empty: all
  /// `PATH`, or as ArchivedImage::parse reads it; its format is found out all the same.
  static LoadSource parse(std::string_view text);
  /// For messages: the path as it was given, or `standard input`.
  std::string shown() const;
  bool is_stdin() const { return path == "-"; }
  /// As `parse` reads it, for the one image of that name.
  std::string with_tag(const std::string& wanted) const;
};

struct LoadSettings {
  std::string platform;   ///< the images for it alone; empty: all of an index that is there whole
  bool only_one = false;  ///< more than one image is refused, before any is in the store
};

struct LoadedImage {
  ImageSet image;
  std::vector<Reference> names;  ///< that it has there; empty: none that a store can keep
};

/// Brings the images into the store, each blob verified, and tags nothing. Digests stay as they
/// are, but for an archive without an OCI layout (Docker before 25, podman's docker-archive): its
/// manifests are made, as functions of configs and layers. Of an index that is there in part, as
/// Docker saves what it pulled for one platform, the image for `settings.platform`, else for this
/// machine, else the only one that is there. A tar may be compressed as a whole (gzip, zstd, xz).
///
/// In the order in which they are listed; at least one. Throws `absent` (no such file, nothing came
/// by standard input), `not-found` (no such tag, no image for the platform), `ambiguous` (usage:
/// more than one), `bad-image`, `bad-tar`, `bad-gzip`, `bad-zstd`, `bad-xz`, `digest-mismatch`.
std::vector<LoadedImage> load_images(Store& store, const LoadSource& from,
                                     const LoadSettings& settings, Progress& progress);

}  // namespace mlenv
