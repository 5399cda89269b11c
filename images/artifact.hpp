#pragma once
// What an index lists beside images (image-spec 1.1, manifest.md "Guidelines for Artifact Usage"):
// attestations as BuildKit writes them, signatures, bills of materials. Nobody runs them; they are
// kept and passed on byte for byte, so that the index keeps its digest.
#include <string>
#include <string_view>
#include <vector>

#include "images/oci.hpp"

namespace mlenv {

struct Artifact {
  std::string manifest;  ///< raw bytes
  Descriptor descriptor;
  std::string type;               ///< `artifactType`, else what its config or first blob is
  std::vector<Descriptor> blobs;  ///< all that the manifest names: config, then layers
  const Digest& digest() const { return descriptor.digest; }
};

/// The platform that BuildKit gives to its attestations, so that nobody takes them for images.
inline constexpr std::string_view kNoPlatform = "unknown/unknown";

/// Whether an index's entry for `platform` (empty: it names none) is no image: by that platform, or
/// by what the manifest says of its config. What is no manifest at all is false.
bool is_artifact(std::string_view platform, std::string_view manifest);

/// Throws `bad-image`. `media_type` is the entry's.
Artifact parse_artifact(std::string manifest, std::string media_type);

}  // namespace mlenv
