#pragma once
// Images as files: OCI layout folder or tar (image-spec image-layout.md), and Docker's own archive
// (`docker load`: manifest.json, config, layers as tar).
#include "base/progress.hpp"
#include "images/store.hpp"

namespace mlenv {

/// `oci:DIR`, `oci-archive:FILE` or `docker-archive:FILE`.
struct Output {
  enum class Format { oci, oci_archive, docker_archive } format = Format::oci;
  fs::path path;  ///< `-`: standard output
  /// Throws `bad-output` (usage) naming the formats.
  static Output parse(std::string_view text);
  bool is_stdout() const { return path == "-"; }
  /// For messages: the path as it was given, or `standard output`.
  std::string shown() const;
  /// Throws `bad-output` (usage) where nothing can be written: the folder around it is absent or
  /// closed to us, a folder stands where a file should be (or the reverse), a folder holds
  /// something that is not an OCI layout, standard output is a terminal.
  void check() const;
  /// Throws `bad-output` (usage) where the format has no words for an index.
  void require_index() const;
};

/// Writes atomically (a file: renamed into place; a folder: blobs first, index.json last, existing
/// blobs kept when they are what their names say). What is there and is no regular file (a device,
/// a pipe) is written into and never replaced; a link to a file stays a link. `name` becomes the
/// reference annotation or repo tag; in a folder it replaces its own entry alone. Deterministic.
/// Throws what `Output::check` throws, and `bad-output` (usage) for an index as a Docker archive.
void write_output(const Store& store, const ImageSet& image, const Reference& name,
                  const Output& output, Progress& progress);

}  // namespace mlenv
