#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pool.hpp"
#include "images/pull_source.hpp"
#include "images/registry.hpp"

namespace mlenv {
namespace {

/// What the store lacks, each blob once.
std::vector<Layer> missing_layers(const Store& store, const Image& image) {
  std::set<Digest> seen;
  std::vector<Layer> missing;
  for (const Layer& layer : image.layers) {
    if (!seen.insert(layer.blob.digest).second || store.has(layer.blob.digest)) continue;
    missing.push_back(layer);
  }
  // The largest first, so that none is left alone at the end.
  std::stable_sort(missing.begin(), missing.end(), [](const Layer& a, const Layer& b) {
    return a.blob.size_bytes > b.blob.size_bytes;
  });
  return missing;
}

/// Of an image that stands in no index; variants are not looked at.
void check_platform(const Image& image, const Reference& from, const std::string& platform) {
  const std::string found = image.settings.os + "/" + image.settings.architecture;
  if (platform.empty() || platform == found || platform.starts_with(found + "/")) return;
  throw failure("not-found", "`{}` is an image for {}, not for {}", from.str(), found, platform);
}

Image get_image(Store& store, PullSource& source, const Reference& from,
                const RegistryOptions& options, Progress& progress) {
  std::optional<Registry::Manifest> manifest = source.get_manifest(from.manifest_name());
  if (!manifest) {
    throw failure("not-found", "the registry has no image `{}`", from.str())
        .hint("check repository and tag; a registry may also hide what it does not let you read");
  }
  const Descriptor config = config_of_manifest(manifest->bytes);
  if (!store.has(config.digest)) {
    Activity activity{progress, "pull config", config.size_bytes};
    source.fetch_blob(store, config, activity);
  }
  Image image = parse_image(std::move(manifest->bytes), store.read(config.digest));
  check_platform(image, from, options.platform);
  const std::vector<Layer> missing = missing_layers(store, image);
  if (!missing.empty()) {
    const std::size_t threads =
        std::min<std::size_t>(std::max(1U, options.uploads), missing.size());
    Pool pool{static_cast<unsigned>(threads)};
    pool.for_each(missing.size(), [&](std::size_t i) {
      const Layer& layer = missing[i];
      const std::string name = layer.title.empty() ? layer.blob.digest.brief() : layer.title;
      Activity activity{progress, "pull " + name, layer.blob.size_bytes};
      source.fetch_blob(store, layer.blob, activity);
    });
  }
  store.put_image(image);
  return image;
}

}  // namespace

std::optional<Layer> pull_layer(Store& store, Registry& registry, const Digest& manifest,
                                const Digest& blob, Progress& progress) {
  try {
    std::optional<Registry::Manifest> found = registry.get_manifest(manifest.str());
    if (!found) return std::nullopt;
    const Descriptor config = config_of_manifest(found->bytes);
    if (!store.has(config.digest)) {
      Activity activity{progress, "pull config", config.size_bytes};
      fetch_blob(store, registry, config, activity);
    }
    const Image image = parse_image(std::move(found->bytes), store.read(config.digest));
    for (const Layer& layer : image.layers) {
      if (layer.blob.digest != blob) continue;
      if (!store.has(blob)) {
        Activity activity{progress, "pull " + layer.title, layer.blob.size_bytes};
        fetch_blob(store, registry, layer.blob, activity);
      }
      return layer;
    }
  } catch (const Error& error) {
    log::debug("a recorded layer is not taken from the registry: {}", error.what());
  }
  return std::nullopt;
}

Image fetch_image(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
                  Progress& progress) {
  return while_doing(fmt::format("pulling `{}`", from.str()), [&] {
    PullSource source{http, from, options};
    return get_image(store, source, from, options, progress);
  });
}

Image pull(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
           Progress& progress) {
  Image image = fetch_image(store, http, from, options, progress);
  store.tag(from, image.digest());
  return image;
}

}  // namespace mlenv
