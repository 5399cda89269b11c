#pragma once
// Images as files: OCI layout folder or tar (image-spec image-layout.md), and Docker's own archive
// (`docker load`: manifest.json, config, layers as tar).
#include "base/progress.hpp"
#include "images/store.hpp"

namespace mlenv {

/// `oci:DIR`, `oci-archive:FILE` or `docker-archive:FILE`.
struct Output {
  enum class Format { oci, oci_archive, docker_archive } format = Format::oci;
  fs::path path;
  /// Throws `bad-output` (usage) naming the formats.
  static Output parse(std::string_view text);
};

/// Writes atomically (a file: renamed into place; a folder: blobs first, index.json last, existing
/// blobs kept). `name` becomes the reference annotation or repo tag. Deterministic.
void write_output(const Store& store, const Image& image, const Reference& name,
                  const Output& output, Progress& progress);

}  // namespace mlenv
