#pragma once
// A base that is an image: what a recipe may write, and what a lock records of it.
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "images/archive_input.hpp"
#include "images/oci.hpp"
#include "images/reference.hpp"

namespace mlenv {

/// `oci:DIR[:TAG]` and its kin, or a reference with a registry's host.
using BaseImage = std::variant<ArchivedImage, Reference>;
/// The mistake as a sentence, where `text` is neither.
std::variant<BaseImage, std::string> parse_base_image(std::string_view text);

/// Which bytes a base is, and what of its files the rest of a lock stands on.
struct LockedBase {
  Digest manifest;
  Descriptor config;          ///< its media type is always OCI's
  std::vector<Layer> layers;  ///< lowest first, without titles; media types are OCI's
  std::string interpreter;  ///< `/usr/local/bin/python3.11`, no link; empty: the recipe needs none
  std::string glibc;        ///< `2.36`; empty: there is none
  friend bool operator==(const LockedBase&, const LockedBase&) = default;
};

/// The OCI name of a layer's media type (Docker's are renamed: the bytes are the same); nullopt for
/// layers that are no tar, or lie elsewhere.
std::optional<std::string> oci_layer_type(std::string_view media_type);

}  // namespace mlenv
