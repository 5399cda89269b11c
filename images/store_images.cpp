// Images and their names.
#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "images/platform.hpp"
#include "images/store.hpp"
#include "images/store_folder.hpp"
#include "images/store_names.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kShortestPrefix = 6;

/// Hex digits, with or without `sha256:` in front; empty when `text` is something else.
std::string_view hex_prefix(std::string_view text) {
  if (text.starts_with("sha256:")) text.remove_prefix(7);
  const bool hex = text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return hex && text.size() >= kShortestPrefix && text.size() <= 64 ? text : std::string_view{};
}

/// Or an index.
bool is_manifest(const Store& store, const Digest& digest) {
  const auto size = store.size_of(digest);
  if (!size || *size > size_limit::kManifest) return false;
  try {
    std::string text = store.read(digest);
    if (is_index({}, text)) {
      (void)parse_index(std::move(text));
    } else {
      (void)config_of_manifest(text);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

Digest only_one(const std::set<Digest>& found, std::string_view prefix) {
  if (found.size() == 1) return *found.begin();
  std::string list;
  for (const Digest& digest : found) list += (list.empty() ? "`" : ", `") + digest.brief() + "`";
  throw usage_error("ambiguous", "`{}` is the beginning of several images: {}", prefix, list)
      .hint("give more digits");
}

/// The store's own name for it; nullopt when `text` is no reference at all.
std::optional<Reference> parse_name(std::string_view text) {
  try {
    return Reference::parse(text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void add_part(const Store& store, ImageSet& set, const ImageIndex::Entry& part) {
  const Digest& digest = part.manifest.digest;
  if (!store.has(digest)) {
    set.absent.push_back(part);
    return;
  }
  while_doing(part.shown(), [&] {
    std::string text = store.read(digest, size_limit::kManifest);
    if (is_artifact(part.platform, text)) {
      set.artifacts.push_back(parse_artifact(std::move(text), part.manifest.media_type));
    } else {
      set.images.push_back(store.image(digest));
    }
  });
}

/// A descriptor's digest says what a blob is; its size, which others plan with, may still be a lie.
void require_size(const Store& store, const Descriptor& blob) {
  const std::optional<std::uint64_t> size = store.size_of(blob.digest);
  if (!size) throw absent_blob(blob.digest);
  if (*size == blob.size_bytes) return;
  throw failure("bad-image", "the manifest has another size for `{}` than the blob",
                blob.digest.str())
      .because(fmt::format("manifest: {} bytes, blob: {} bytes", blob.size_bytes, *size));
}

}  // namespace

void Store::put_image(const Image& image) {
  for (const Layer& layer : image.layers) require_size(*this, layer.blob);
  // The manifest comes last: it names the config.
  for (const std::string* content : {&image.config, &image.manifest}) {
    folder_->publish_text(*content, Digest::of(*content));
  }
}

void Store::put_artifact(const Artifact& artifact) {
  for (const Descriptor& blob : artifact.blobs) require_size(*this, blob);
  folder_->publish_text(artifact.manifest, artifact.digest());
}

void Store::put_index(const ImageIndex& index) {
  for (const ImageIndex::Entry& entry : index.entries) {
    if (!folder_->has_blob(entry.manifest.digest)) throw absent_blob(entry.manifest.digest);
    require_size(*this, entry.manifest);
  }
  folder_->publish_text(index.bytes, index.digest());
}

ImageSet Store::image_set(const Digest& manifest_or_index) const {
  std::string text = read(manifest_or_index, size_limit::kManifest);
  if (!is_index({}, text)) return image(manifest_or_index);
  ImageSet set{parse_index(std::move(text)), {}};
  for (const ImageIndex::Entry& entry : set.index->entries) add_part(*this, set, entry);
  if (set.images.empty()) throw absent_blob(set.index->entries.front().manifest.digest);
  return set;
}

Image Store::image(const Digest& manifest) const {
  std::string text = read(manifest, size_limit::kManifest);
  std::string config = read(config_of_manifest(text).digest, size_limit::kImageConfig);
  return parse_image(std::move(text), std::move(config));
}

std::vector<Store::Name> Store::names() const {
  std::vector<Name> out;
  for (const fs::path& file : list_folder(folder_->names())) {
    const auto name = name_of_file(file.filename().string());
    const auto digest = read_name(file);
    if (name && digest) out.push_back({*name, *digest});
  }
  std::sort(out.begin(), out.end(), [](const Name& a, const Name& b) { return a.name < b.name; });
  return out;
}

std::optional<Digest> Store::find_image(std::string_view name_or_digest) const {
  const auto reference = parse_name(name_or_digest);
  if (reference) {
    auto named = read_name(folder_->names() / name_file(*reference));
    // Pulled by the digest of an index, the name of its file, an image has another one.
    const bool by_digest = reference->tag().empty() || reference->digest() == named;
    if (named && (!reference->digest() || by_digest)) return named;
    if (reference->digest() && is_manifest(*this, *reference->digest())) {
      return reference->digest();
    }
  }
  const std::string_view prefix = hex_prefix(name_or_digest);
  if (prefix.empty()) return std::nullopt;
  std::set<Digest> found;
  for (const Name& name : names()) {
    if (name.manifest.hex().starts_with(prefix)) found.insert(name.manifest);
  }
  if (!found.empty()) return only_one(found, prefix);
  // Images without a name.
  for (const fs::path& blob : list_folder(folder_->root() / "blobs")) {
    const std::string hex = blob.filename().string();
    if (hex.size() != 64 || !hex.starts_with(prefix)) continue;
    const Digest digest = Digest::from_hex(hex);
    if (is_manifest(*this, digest)) found.insert(digest);
  }
  if (found.empty()) return std::nullopt;
  return only_one(found, prefix);
}

}  // namespace mlenv
