#include "images/archive_blobs.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "images/archive_parts.hpp"
#include "images/image_json.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

std::string clean(const std::string& name) { return fs::path(name).lexically_normal().string(); }

json as_json(const Descriptor& blob) {
  return {{"mediaType", blob.media_type}, {"digest", blob.digest.str()}, {"size", blob.size_bytes}};
}

/// Hashes what passes.
class Tee final : public Sink {
 public:
  explicit Tee(int fd) : file_(fd) {}
  void write(ByteView data) override {
    if (head_.size() < 4) head_ += as_text(data.subspan(0, std::min<std::size_t>(data.size(), 4)));
    hash_.write(data);
    file_.write(data);
  }
  Descriptor finish() {
    const std::uint64_t size = hash_.size_bytes();
    std::string type = "application/vnd.oci.image.layer.v1.tar";
    if (head_.starts_with("\x1f\x8b")) type += "+gzip";
    if (head_.starts_with("\x28\xb5\x2f\xfd")) type += "+zstd";
    return {std::move(type), hash_.finish(), size};
  }

 private:
  FdSink file_;
  Sha256 hash_;
  std::string head_;
};

/// An entry of Docker's manifest.json.
struct DockerEntry {
  std::string config;
  std::vector<std::string> layers;
};

DockerEntry docker_entry(const json& entry) {
  DockerEntry one;
  one.config = clean(entry.at("Config").get<std::string>());
  for (const json& name : entry.at("Layers")) one.layers.push_back(clean(name.get<std::string>()));
  return one;
}

}  // namespace

EntryNames names_of_entry(const json& entry) {
  const auto annotations = entry.find("annotations");
  if (annotations == entry.end() || !annotations->is_object()) return {};
  return {annotations->value("org.opencontainers.image.ref.name", ""),
          annotations->value("io.containerd.image.name", "")};
}

std::set<std::string> repo_tags(const json& entry) {
  std::set<std::string> names;
  const auto tags = entry.find("RepoTags");
  if (tags == entry.end() || !tags->is_array()) return names;
  for (const json& tag : *tags) names.insert(tag.get<std::string>());
  return names;
}

std::vector<Descriptor> layers_of(const Image& image) {
  std::vector<Descriptor> blobs;
  for (const Layer& layer : image.layers) blobs.push_back(layer.blob);
  return blobs;
}

std::string quoted_list(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

void ArchiveBlobs::reading(const std::string& what, const std::function<void()>& read) {
  try {
    read();
  } catch (const json::exception& error) {
    throw failure("bad-image", "{} is not one that mlenv can read", what).because(error.what());
  } catch (const Error& error) {
    if (error.code() != "bad-json" && error.code() != "bad-digest") throw;
    throw failure("bad-image", "{} is not one that mlenv can read", what).because(error.what());
  }
}

Error ArchiveBlobs::lacks(const std::string& name) const {
  if (members_.has(name)) {
    return failure("too-large", "`{}` of `{}` is not read", name, shown_)
        .because("an archive's texts may have 4 MiB each, and 256 MiB together")
        .hint("write an archive with fewer images");
  }
  return failure("bad-image", "`{}` has no `{}`", shown_, name)
      .hint("it was not written whole, or is no image: write it again");
}

Error ArchiveBlobs::no_such_image(const std::string& tag,
                                  const std::set<std::string>& names) const {
  if (tag.empty()) return failure("not-found", "`{}` lists no image", shown_);
  return failure("not-found", "`{}` has no image `{}`", shown_, tag)
      .because(names.empty() ? "its images have no names" : "it has " + quoted_list(names));
}

json ArchiveBlobs::document(const std::string& name) {
  const auto text = members_.text(name);
  if (!text) throw lacks(name);
  json parsed;
  const std::string what = fmt::format("`{}` of `{}`", name, shown_);
  reading(what, [&] { parsed = parse_image_json(*text, what); });
  return parsed;
}

std::string ArchiveBlobs::blob(const Digest& digest) {
  auto text = members_.text(layout_blob_path(digest));
  if (!text) throw lacks(layout_blob_path(digest));
  if (Digest::of(*text) == digest) return *std::move(text);
  throw failure("digest-mismatch", "`{}` in `{}` is damaged", layout_blob_path(digest), shown_)
      .because(fmt::format("found {}", Digest::of(*text).str()));
}

bool ArchiveBlobs::holds(const Digest& digest) const {
  return members_.has(layout_blob_path(digest));
}

Image ArchiveBlobs::image(std::string manifest) {
  const Descriptor config = config_of_manifest(manifest);
  return parse_image(std::move(manifest), blob(config.digest));
}

void ArchiveBlobs::fetch(const std::vector<Descriptor>& blobs) {
  std::map<std::string, Descriptor> missing;
  for (const Descriptor& one : blobs) {
    if (!store_.has(one.digest)) missing.emplace(layout_blob_path(one.digest), one);
  }
  std::uint64_t total = 0;
  std::set<std::string> names;
  for (const auto& [name, one] : missing) {
    total += one.size_bytes;
    names.insert(name);
  }
  if (names.empty()) return;
  Activity activity{progress_, "reading " + fs::path(shown_).filename().string(), total};
  members_.read(names, [&](const std::string& name, Source& data) {
    const Descriptor& one = missing.at(name);
    Store::Staged staged = store_.stage();
    FdSink file{staged.fd()};
    VerifyingSink checked{file, one.digest, one.size_bytes, "`" + name + "`"};
    copy(data, checked);
    checked.finish();
    staged.commit(one.digest);
    activity.advance(one.size_bytes);
    missing.erase(name);
  });
  if (!missing.empty()) throw lacks(missing.begin()->first);
}

std::map<std::string, Descriptor> ArchiveBlobs::take_layers(const std::set<std::string>& names) {
  std::map<std::string, Descriptor> layers;
  Activity activity{progress_, "reading " + fs::path(shown_).filename().string()};
  members_.read(names, [&](const std::string& name, Source& data) {
    Store::Staged staged = store_.stage();
    Tee tee{staged.fd()};
    copy(data, tee);
    const Descriptor layer = tee.finish();
    staged.commit(layer.digest);
    activity.advance(layer.size_bytes);
    layers.emplace(name, layer);
  });
  for (const std::string& name : names) {
    if (!layers.contains(name)) throw lacks(name);
  }
  return layers;
}

std::vector<Image> ArchiveBlobs::docker_images(const std::vector<json>& entries) {
  std::vector<DockerEntry> all;
  std::set<std::string> names;
  reading(fmt::format("`manifest.json` of `{}`", shown_), [&] {
    for (const json& entry : entries) {
      all.push_back(docker_entry(entry));
      names.insert(all.back().layers.begin(), all.back().layers.end());
    }
  });
  const std::map<std::string, Descriptor> layers = take_layers(names);
  std::vector<Image> images;
  for (const DockerEntry& entry : all) {
    auto config = members_.text(entry.config);
    if (!config) throw lacks(entry.config);
    json blobs = json::array();
    for (const std::string& name : entry.layers) blobs.push_back(as_json(layers.at(name)));
    const Descriptor config_blob{std::string(kConfigType), Digest::of(*config), config->size()};
    images.push_back(parse_image(canonical({{"schemaVersion", 2},
                                            {"mediaType", kManifestType},
                                            {"config", as_json(config_blob)},
                                            {"layers", std::move(blobs)}}),
                                 *std::move(config)));
  }
  return images;
}

}  // namespace mlenv
