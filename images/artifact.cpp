#include "images/artifact.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/image_json.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::string_view kDockerConfigType = "application/vnd.docker.container.image.v1+json";
/// Of image-spec 1.1's drafts: `blobs`, and no config.
constexpr std::string_view kArtifactType = "application/vnd.oci.artifact.manifest.v1+json";

std::vector<Descriptor> read_blobs(const json& manifest) {
  std::vector<Descriptor> blobs;
  if (manifest.contains("config")) blobs.push_back(read_descriptor(manifest.at("config")));
  for (const char* list : {"layers", "blobs"}) {
    if (!manifest.contains(list)) continue;
    for (const json& blob : manifest.at(list)) blobs.push_back(read_descriptor(blob));
  }
  return blobs;
}

bool is_config_of_image(std::string_view type) {
  return type == kConfigType || type == kDockerConfigType;
}

std::string type_of(const json& manifest, const std::vector<Descriptor>& blobs) {
  if (std::string named = text_of(manifest, "artifactType"); !named.empty()) return named;
  for (const Descriptor& blob : blobs) {
    if (!is_config_of_image(blob.media_type)) return blob.media_type;
  }
  return {};
}

}  // namespace

bool is_artifact(std::string_view platform, std::string_view manifest) {
  const json root = try_image_json(manifest);
  if (!root.is_object()) return false;
  if (platform == kNoPlatform || text_of(root, "mediaType") == kArtifactType) return true;
  const auto config = root.find("config");
  return config != root.end() && config->is_object() &&
         !is_config_of_image(text_of(*config, "mediaType"));
}

Artifact parse_artifact(std::string manifest, std::string media_type) {
  const auto unreadable = [](const std::exception& error) {
    return failure("bad-image", "the index lists an artifact that mlenv cannot read")
        .because(error.what());
  };
  try {
    const json root = parse_image_json(manifest, "manifest");
    if (!root.is_object()) throw failure("bad-image", "the manifest is not a JSON object");
    std::vector<Descriptor> blobs = read_blobs(root);
    std::string type = type_of(root, blobs);
    Descriptor descriptor{std::move(media_type), Digest::of(manifest), manifest.size()};
    return {std::move(manifest), std::move(descriptor), std::move(type), std::move(blobs)};
  } catch (const json::exception& error) {
    throw unreadable(error);
  } catch (const Error& error) {
    throw unreadable(error);
  }
}

}  // namespace mlenv
