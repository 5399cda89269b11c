#pragma once
// A recipe's own package sources as files of the image, so that apt, pip and uv use them there too.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "recipes/recipe.hpp"

namespace mlenv {

/// Sources that come on top of the machine's own, which `mlenv run` still has to lend.
inline constexpr std::string_view kExtraSources = "etc/apt/sources.list.d/mlenv-extra.sources";

struct ImageFile {
  std::string path;  ///< relative to the image's root
  std::string text;
};

/// Sorted by path; empty for a recipe that names no sources. /etc/apt/sources.list.d/mlenv.sources
/// (deb822, sources.list(5); kExtraSources where they do not hold the base's suite) with the
/// keyrings it names below /etc/apt/keyrings, /etc/pip.conf and /etc/uv/uv.toml. What only this
/// machine reaches (`file:` URLs) is left out. Reads keyrings, and throws when one cannot be read.
std::vector<ImageFile> image_sources(const Recipe& recipe);

/// Of all paths and texts; nullopt for no files. The lock holds this, not the sources: it names no
/// hosts.
std::optional<Digest> digest_of(const std::vector<ImageFile>& files);

}  // namespace mlenv
