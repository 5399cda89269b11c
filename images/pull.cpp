#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/pool.hpp"
#include "base/size_limits.hpp"
#include "images/platform.hpp"
#include "images/pull_source.hpp"
#include "images/registry.hpp"

namespace mlenv {
namespace {

Error lies_about_size(const Descriptor& blob, std::uint64_t size) {
  return failure("bad-image", "the manifest has another size for `{}` than the blob",
                 blob.digest.str())
      .because(fmt::format("manifest: {} bytes, blob: {} bytes", blob.size_bytes, size));
}

/// What the store lacks, each blob once. Of what it has, the size must be the manifest's:
/// `put_image` would refuse it after all else has come.
std::vector<Layer> missing_layers(const Store& store, const Image& image) {
  std::set<Digest> seen;
  std::vector<Layer> missing;
  for (const Layer& layer : image.layers) {
    if (const auto size = store.size_of(layer.blob.digest)) {
      if (*size != layer.blob.size_bytes) throw lies_about_size(layer.blob, *size);
      continue;
    }
    if (seen.insert(layer.blob.digest).second) missing.push_back(layer);
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

/// What pulling needs to know at each step.
struct Pull {
  Store& store;
  PullSource& source;
  unsigned uploads;
  Progress& progress;
};

/// Config and layers of a manifest, and the image itself once `accept` has not thrown.
template <typename Accept>
Image get_image(const Pull& pull, std::string manifest, Accept&& accept) {
  Store& store = pull.store;
  const Descriptor config = config_of_manifest(manifest);
  if (!store.has(config.digest)) {
    Activity activity{pull.progress, "pull config", config.size_bytes};
    pull.source.fetch_blob(store, config, activity);
  }
  Image image =
      parse_image(std::move(manifest), store.read(config.digest, size_limit::kImageConfig));
  accept(image);
  const std::vector<Layer> missing = missing_layers(store, image);
  if (!missing.empty()) {
    const std::size_t threads = std::min<std::size_t>(std::max(1U, pull.uploads), missing.size());
    Pool pool{static_cast<unsigned>(threads)};
    pool.for_each(missing.size(), [&](std::size_t i) {
      const Layer& layer = missing[i];
      const std::string name = layer.shown_name();
      Activity activity{pull.progress, "pull " + name, layer.blob.size_bytes};
      pull.source.fetch_blob(store, layer.blob, activity);
    });
  }
  store.put_image(image);
  return image;
}

Artifact get_artifact(const Pull& pull, std::string manifest, const std::string& media_type) {
  Artifact artifact = parse_artifact(std::move(manifest), media_type);
  for (const Descriptor& blob : artifact.blobs) {
    if (pull.store.has(blob.digest)) continue;
    Activity activity{pull.progress, "pull " + blob.digest.brief(), blob.size_bytes};
    pull.source.fetch_blob(pull.store, blob, activity);
  }
  pull.store.put_artifact(artifact);
  return artifact;
}

/// Of an index.
void get_part(const Pull& pull, const ImageIndex::Entry& part, ImageSet& set) {
  const std::string digest = part.manifest.digest.str();
  if (part.manifest.size_bytes > size_limit::kManifest) {
    throw failure("too-large", "`{}` has {} bytes, says its index", digest,
                  part.manifest.size_bytes);
  }
  std::optional<Registry::Manifest> one = pull.source.get_unresolved(digest);
  if (!one) {
    throw failure("not-found", "the registry lacks `{}`, which its index lists", digest);
  }
  if (is_artifact(part.platform, one->bytes)) {
    set.artifacts.push_back(get_artifact(pull, std::move(one->bytes), part.manifest.media_type));
  } else {
    set.images.push_back(get_image(pull, std::move(one->bytes), [](const Image&) {}));
  }
}

ImageSet get_set(const Pull& pull, const Reference& from) {
  std::optional<Registry::Manifest> top = pull.source.get_unresolved(from.manifest_name());
  if (!top) throw pull.source.no_image(from);
  if (!is_index(top->media_type, top->bytes)) {
    return get_image(pull, std::move(top->bytes), [](const Image&) {});
  }
  ImageSet set{parse_index(std::move(top->bytes)), {}};
  for (const ImageIndex::Entry& part : set.index->entries) {
    while_doing(part.shown(), [&] { get_part(pull, part, set); });
  }
  if (set.images.empty()) {
    throw failure("not-found", "the index `{}` lists no images, only artifacts", from.str());
  }
  pull.store.put_index(*set.index);
  return set;
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
    const Image image =
        parse_image(std::move(found->bytes), store.read(config.digest, size_limit::kImageConfig));
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
    std::optional<Registry::Manifest> manifest = source.get_manifest(from.manifest_name());
    if (!manifest) throw source.no_image(from);
    return get_image({store, source, options.uploads, progress}, std::move(manifest->bytes),
                     [&](const Image& image) { check_platform(image, from, options.platform); });
  });
}

Image pull(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
           Progress& progress) {
  Image image = fetch_image(store, http, from, options, progress);
  store.tag(from, image.digest());
  return image;
}

ImageSet pull_all(Store& store, Http& http, const Reference& from, const RegistryOptions& options,
                  Progress& progress) {
  ImageSet set = while_doing(fmt::format("pulling `{}`", from.str()), [&] {
    PullSource source{http, from, options};
    return get_set({store, source, options.uploads, progress}, from);
  });
  store.tag(from, set.digest());
  return set;
}

}  // namespace mlenv
