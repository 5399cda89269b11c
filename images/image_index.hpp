#pragma once
// One name for the images of several platforms (image-spec 1.1, image-index.md; Docker calls it a
// manifest list). Raw bytes are kept, as of manifests.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "images/artifact.hpp"
#include "images/oci.hpp"

namespace mlenv {

struct ImageIndex {
  struct Entry {
    Descriptor manifest;
    std::string platform;  ///< as platform_name says it; empty: none is named
    /// `the image for linux/arm64`; by its digest where no platform is named.
    std::string shown() const;
  };
  std::string bytes;
  Descriptor descriptor;
  std::vector<Entry> entries;  ///< as they are listed
  const Digest& digest() const { return descriptor.digest; }
};

/// Anybody's index. Throws `bad-image` for what is none, and for one that lists further indexes.
ImageIndex parse_index(std::string bytes);

/// What a name or digest stands for: one image, or an index with all of its images. A store may
/// have some of those alone: a part whose manifest is not there was not fetched, and the others are
/// sound.
struct ImageSet {
  std::vector<Image> images;  ///< in the index's order, at least one; without one a single one
  std::optional<ImageIndex> index;        ///< nullopt: one image
  std::vector<Artifact> artifacts;        ///< what the index lists besides
  std::vector<ImageIndex::Entry> absent;  ///< what the store it was read from does not have of it

  ImageSet(Image image) { images.push_back(std::move(image)); }
  ImageSet(ImageIndex of, std::vector<Image> all) : images(std::move(all)), index(std::move(of)) {}
  const Descriptor& descriptor() const {
    return index ? index->descriptor : images.front().manifest_descriptor;
  }
  const Digest& digest() const { return descriptor().digest; }
  /// Of the image at `at`: what the index says, else what its config says.
  std::string platform(std::size_t at) const;
  /// Throws `absent`, naming the platforms, unless all that the index lists is there.
  void require_whole() const;
  /// Everything of it that is there, each blob once, by digest.
  std::map<Digest, std::uint64_t> blobs() const;
  /// Compressed, each layer once.
  std::uint64_t layer_bytes() const;
  /// Of an index each layer once.
  std::size_t layer_count() const;
};

/// The canonical index of these images, at least one: sorted by platform, so that it is a function
/// of the images whatever their order.
ImageSet compose_index(std::vector<Image> images);

/// `linux/amd64`, `linux/arm/v7`. The variants that every machine of an architecture has go without
/// saying (image-index.md "Platform Variants"); those that only some have stay.
std::string platform_name(std::string_view os, std::string_view architecture,
                          std::string_view variant);
/// Of an image's config.
std::string platform_name(const ImageConfig& settings);
/// Of an entry of an index; empty: no platform is named.
std::string platform_name(const nlohmann::json& entry);

/// An image's entry in an index: descriptor and platform, with the variant where there is one.
nlohmann::json platform_entry(const Image& image);

}  // namespace mlenv
