#pragma once
// Images that lie in files, on their way into the store: OCI layouts as a folder or as a tar
// (image-spec image-layout.md), Docker's own archive (`docker save`).
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.hpp"
#include "images/archive.hpp"
#include "images/store.hpp"

namespace mlenv {

/// `oci:DIR[:TAG]`, `oci-archive:FILE[:TAG]` or `docker-archive:FILE[:TAG]`.
struct ArchivedImage {
  Output::Format format = Output::Format::oci;
  fs::path path;
  std::string tag;  ///< what follows the first `:` after the path; empty: the only image there
  /// nullopt for a text that begins with none of the three. The path may be empty.
  static std::optional<ArchivedImage> parse(std::string_view text);
  /// As it would be written.
  std::string str() const;
};

/// Brings the image into the store, each blob verified; nothing is tagged. An index is resolved for
/// `platform`. `manifest` is taken whatever the tag says, where it is there. A Docker archive has
/// no manifest: the one that is made is a function of its config and layers.
///
/// Throws `absent` (no such file), `not-found` (no such tag, no such platform; what there is is
/// named), `ambiguous` (usage), `bad-image`, `bad-tar`, `digest-mismatch`.
Image fetch_image(Store& store, const ArchivedImage& from, std::string_view platform,
                  const std::optional<Digest>& manifest, Progress& progress);

}  // namespace mlenv
