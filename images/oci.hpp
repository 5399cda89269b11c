#pragma once
// OCI image values (image-spec 1.1: descriptor.md, manifest.md, config.md). Raw bytes are kept, so
// that copying keeps digests; fields are parsed from them.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"

namespace mlenv {

inline constexpr std::string_view kManifestType = "application/vnd.oci.image.manifest.v1+json";
inline constexpr std::string_view kIndexType = "application/vnd.oci.image.index.v1+json";
inline constexpr std::string_view kConfigType = "application/vnd.oci.image.config.v1+json";
inline constexpr std::string_view kLayerGzipType = "application/vnd.oci.image.layer.v1.tar+gzip";
inline constexpr std::string_view kDockerManifestType =
    "application/vnd.docker.distribution.manifest.v2+json";
inline constexpr std::string_view kDockerIndexType =
    "application/vnd.docker.distribution.manifest.list.v2+json";

struct Descriptor {
  std::string media_type;
  Digest digest;
  std::uint64_t size_bytes = 0;
  friend bool operator==(const Descriptor&, const Descriptor&) = default;
};

/// A layer: its blob as it travels, and the digest of the tar inside it.
struct Layer {
  Descriptor blob;
  Digest diff_id;
  std::uint64_t tar_bytes = 0;  ///< 0 when not known (pulled images)
  std::string title;            ///< what is in it, for people: `torch 2.15.0`, `debian:bookworm`
  /// Its title; the beginning of its digest where it has none, as other tools' layers have.
  std::string shown_name() const { return title.empty() ? blob.digest.brief() : title; }
  friend bool operator==(const Layer&, const Layer&) = default;
};

/// What a container of the image runs and where (config.md "config").
struct ImageConfig {
  std::string architecture = "amd64";
  std::string variant;  ///< of the architecture, `v8`; empty: none is named
  std::string os = "linux";
  std::vector<std::string> env;  ///< `K=V`, in order
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string workdir;
  std::string user;
  std::map<std::string, std::string> labels;
};

struct Image {
  std::string manifest;  ///< raw bytes
  std::string config;    ///< raw bytes
  Descriptor manifest_descriptor;
  Descriptor config_descriptor;
  std::vector<Layer> layers;
  ImageConfig settings;
  const Digest& digest() const { return manifest_descriptor.digest; }
};

/// Canonical config and manifest for these layers: a pure function of its arguments. `created` is
/// seconds since the epoch. Each layer's title becomes its history line.
Image compose_image(const ImageConfig& config, const std::vector<Layer>& layers,
                    std::int64_t created);

/// Reads a manifest and its config, OCI or Docker schema 2. Throws `bad-image` when they do not fit
/// together (config digest, number of diff-ids).
Image parse_image(std::string manifest, std::string config);

/// What an image's config says; throws `bad-image`.
ImageConfig parse_settings(std::string_view config);

/// The config descriptor that a manifest names; throws `bad-image`.
Descriptor config_of_manifest(std::string_view manifest);

}  // namespace mlenv
