#include "images/image_index.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/image_json.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

ImageIndex::Entry index_entry_of(const json& entry) {
  ImageIndex::Entry out{{entry.at("mediaType").get<std::string>(),
                         Digest::parse(entry.at("digest").get_ref<const std::string&>()),
                         entry.at("size").get<std::uint64_t>()},
                        platform_name(entry)};
  if (out.manifest.media_type == kIndexType || out.manifest.media_type == kDockerIndexType) {
    throw failure("bad-image", "the index lists another index, `{}`", out.manifest.digest.str())
        .hint("take one platform's image of it: `--platform linux/amd64`");
  }
  return out;
}

std::map<Digest, std::uint64_t> layer_sizes(const std::vector<Image>& images) {
  std::map<Digest, std::uint64_t> layers;
  for (const Image& image : images) {
    for (const Layer& layer : image.layers) {
      layers.emplace(layer.blob.digest, layer.blob.size_bytes);
    }
  }
  return layers;
}

}  // namespace

std::string platform_name(std::string_view os, std::string_view architecture,
                          std::string_view variant) {
  const bool usual = variant.empty() || (architecture == "amd64" && variant == "v1") ||
                     (architecture == "arm64" && (variant == "v8" || variant == "8"));
  std::string name = fmt::format("{}/{}", os, architecture);
  return usual ? name : fmt::format("{}/{}", name, variant);
}

std::string platform_name(const ImageConfig& settings) {
  return platform_name(settings.os, settings.architecture, settings.variant);
}

std::string platform_name(const json& entry) {
  const auto platform = entry.find("platform");
  if (platform == entry.end() || !platform->is_object()) return {};
  return platform_name(text_of(*platform, "os"), text_of(*platform, "architecture"),
                       text_of(*platform, "variant"));
}

json platform_entry(const Image& image) {
  json entry{
      {"mediaType", image.manifest_descriptor.media_type},
      {"digest", image.digest().str()},
      {"size", image.manifest_descriptor.size_bytes},
      {"platform", {{"architecture", image.settings.architecture}, {"os", image.settings.os}}}};
  if (!image.settings.variant.empty()) entry["platform"]["variant"] = image.settings.variant;
  return entry;
}

ImageSet compose_index(std::vector<Image> images) {
  std::sort(images.begin(), images.end(), [](const Image& a, const Image& b) {
    return std::pair(platform_name(a.settings), a.digest()) <
           std::pair(platform_name(b.settings), b.digest());
  });
  json entries = json::array();
  for (const Image& image : images) entries.push_back(platform_entry(image));
  return {
      parse_index(canonical(
          {{"schemaVersion", 2}, {"mediaType", kIndexType}, {"manifests", std::move(entries)}})),
      std::move(images)};
}

ImageIndex parse_index(std::string bytes) {
  std::string type{kIndexType};
  std::vector<ImageIndex::Entry> entries;
  try {
    const json root = parse_image_json(bytes, "index");
    if (root.contains("config") || root.contains("layers")) {
      throw failure("bad-image", "the manifest is an image's and an index at once");
    }
    if (const std::string told = text_of(root, "mediaType"); !told.empty()) type = told;
    for (const json& entry : root.at("manifests")) entries.push_back(index_entry_of(entry));
  } catch (const json::exception& error) {
    throw failure("bad-image", "the index is not one that mlenv can read").because(error.what());
  } catch (const Error& error) {
    if (error.code() == "bad-image" || error.code() == "too-large") throw;
    throw failure("bad-image", "the index is not one that mlenv can read").because(error.what());
  }
  if (entries.empty()) throw failure("bad-image", "the index lists no images");
  Descriptor descriptor{std::move(type), Digest::of(bytes), bytes.size()};
  return {std::move(bytes), std::move(descriptor), std::move(entries)};
}

std::string ImageSet::platform(std::size_t at) const {
  const Image& image = images.at(at);
  if (!index) return platform_name(image.settings);
  // One manifest may be listed for several platforms: the images are in the order of the entries.
  const auto is_it = [&](const auto& other) { return other.digest() == image.digest(); };
  auto before = std::count_if(images.begin(),
                              std::next(images.begin(), static_cast<std::ptrdiff_t>(at)), is_it);
  for (const ImageIndex::Entry& entry : index->entries) {
    if (entry.manifest.digest != image.digest() || before-- > 0) continue;
    if (!entry.platform.empty()) return entry.platform;
    break;
  }
  return platform_name(image.settings);
}

std::string ImageIndex::Entry::shown() const {
  const bool names_none = platform.empty() || platform == kNoPlatform;
  return names_none ? fmt::format("`{}`", manifest.digest.str()) : "the image for " + platform;
}

void ImageSet::require_whole() const {
  if (absent.empty()) return;
  std::string list;
  for (const ImageIndex::Entry& entry : absent) list += (list.empty() ? "" : ", ") + entry.shown();
  throw failure("absent", "the store has not all that the index `{}` lists", digest().str())
      .because("not there: " + list)
      .hint(
          "`mlenv pull --platform all` or `mlenv build --platform all` brings them; a digest from "
          "`mlenv inspect` names one of its images alone");
}

std::map<Digest, std::uint64_t> ImageSet::blobs() const {
  std::map<Digest, std::uint64_t> blobs = layer_sizes(images);
  for (const Image& image : images) {
    for (const Descriptor* one : {&image.manifest_descriptor, &image.config_descriptor}) {
      blobs.emplace(one->digest, one->size_bytes);
    }
  }
  for (const Artifact& artifact : artifacts) {
    blobs.emplace(artifact.digest(), artifact.descriptor.size_bytes);
    for (const Descriptor& one : artifact.blobs) blobs.emplace(one.digest, one.size_bytes);
  }
  blobs.emplace(descriptor().digest, descriptor().size_bytes);
  return blobs;
}

std::uint64_t ImageSet::layer_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [digest, size_bytes] : layer_sizes(images)) bytes += size_bytes;
  return bytes;
}

std::size_t ImageSet::layer_count() const {
  return index ? layer_sizes(images).size() : images.front().layers.size();
}

}  // namespace mlenv
