#include "images/archive_input.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/archive_members.hpp"
#include "images/platform.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

struct Prefix {
  std::string_view text;
  Output::Format format;
};
constexpr std::array kPrefixes{
    Prefix{"oci:", Output::Format::oci},
    Prefix{"oci-archive:", Output::Format::oci_archive},
    Prefix{"docker-archive:", Output::Format::docker_archive},
};

std::string blob_path(const Digest& digest) { return "blobs/sha256/" + digest.hex(); }

/// Runs `read`; what nlohmann-json says about its input becomes `bad-image`.
template <typename Read>
auto reading(const std::string& what, Read&& read) {
  try {
    return read();
  } catch (const json::exception& error) {
    throw failure("bad-image", "{} is not one that mlenv can read", what).because(error.what());
  } catch (const Error& error) {
    if (error.code() != "bad-json" && error.code() != "bad-digest") throw;
    throw failure("bad-image", "{} is not one that mlenv can read", what).because(error.what());
  }
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

class Reader {
 public:
  Reader(Store& store, const ArchivedImage& from, std::string_view platform, Progress& progress)
      : store_(store), from_(from), platform_(platform), progress_(progress) {
    members_ = from.format == Output::Format::oci ? open_folder_members(from.path)
                                                  : open_tar_members(from.path);
  }

  Image layout(const std::optional<Digest>& manifest) {
    std::optional<std::string> text;
    if (manifest) text = members_->text(blob_path(*manifest));
    if (!text) text = chosen_manifest();
    const Descriptor config = config_of_manifest(*text);
    Image image = parse_image(*std::move(text), blob(config.digest));
    std::map<std::string, Descriptor> missing;
    for (const Layer& layer : image.layers) {
      if (!store_.has(layer.blob.digest)) missing.emplace(blob_path(layer.blob.digest), layer.blob);
    }
    fetch(std::move(missing));
    store_.put_image(image);
    return image;
  }

  Image docker() {
    const auto text = members_->text("manifest.json");
    if (!text) throw lacks("manifest.json");
    const json entry =
        reading("`manifest.json`", [&] { return chosen_entry(parse_json(*text, from_.str())); });
    std::vector<std::string> names;
    std::string config_name;
    reading("`manifest.json`", [&] {
      config_name = clean(entry.at("Config").get<std::string>());
      for (const json& name : entry.at("Layers")) names.push_back(clean(name.get<std::string>()));
    });
    auto config = members_->text(config_name);
    if (!config) throw lacks(config_name);
    const std::map<std::string, Descriptor> layers = take_layers({names.begin(), names.end()});
    json blobs = json::array();
    for (const std::string& name : names) blobs.push_back(as_json(layers.at(name)));
    const Descriptor config_blob{std::string(kConfigType), Digest::of(*config), config->size()};
    Image image = parse_image(canonical({{"schemaVersion", 2},
                                         {"mediaType", kManifestType},
                                         {"config", as_json(config_blob)},
                                         {"layers", std::move(blobs)}}),
                              *std::move(config));
    store_.put_image(image);
    return image;
  }

 private:
  static json as_json(const Descriptor& blob) {
    return {
        {"mediaType", blob.media_type}, {"digest", blob.digest.str()}, {"size", blob.size_bytes}};
  }

  static std::string clean(const std::string& name) {
    return fs::path(name).lexically_normal().string();
  }

  Error lacks(const std::string& name) const {
    return failure("bad-image", "`{}` has no `{}`", from_.path.string(), name)
        .hint("it was not written whole, or is no image: write it again");
  }

  /// A manifest or config: small, and what its digest says.
  std::string blob(const Digest& digest) {
    auto text = members_->text(blob_path(digest));
    if (!text) throw lacks(blob_path(digest));
    if (Digest::of(*text) == digest) return *std::move(text);
    throw failure("digest-mismatch", "`{}` in `{}` is damaged", blob_path(digest),
                  from_.path.string())
        .because(fmt::format("found {}", Digest::of(*text).str()));
  }

  std::string chosen_manifest() {
    const auto index = members_->text("index.json");
    if (!index) throw lacks("index.json");
    const std::string what = "`index.json` of `" + from_.path.string() + "`";
    Digest digest = reading(what, [&] { return choose(parse_json(*index, what)); });
    std::string text = blob(digest);
    if (!is_index("", text)) return text;
    digest = reading(from_.str(), [&] { return choose_platform(text, from_.str(), platform_); });
    return blob(digest);
  }

  static std::string annotation(const json& entry, const char* key) {
    const auto annotations = entry.find("annotations");
    if (annotations == entry.end() || !annotations->is_object()) return {};
    return annotations->value(key, "");
  }

  Digest choose(const json& index) const {
    json fitting = json::array();
    std::set<std::string> names;
    std::set<std::string> digests;
    for (const json& entry : index.at("manifests")) {
      const std::string tag = annotation(entry, "org.opencontainers.image.ref.name");
      const std::string name = annotation(entry, "io.containerd.image.name");
      if (!tag.empty()) names.insert(tag);
      if (!from_.tag.empty() && from_.tag != tag && from_.tag != name) continue;
      digests.insert(entry.at("digest").get<std::string>());
      fitting.push_back(entry);
    }
    if (digests.size() == 1) return Digest::parse(*digests.begin());
    if (digests.empty()) throw no_such_tag(names);
    if (names.size() > 1 && from_.tag.empty()) throw several(names);
    return choose_platform(canonical({{"manifests", fitting}}), from_.str(), platform_);
  }

  json chosen_entry(const json& entries) const {
    std::set<std::string> names;
    const json* only = entries.size() == 1 && from_.tag.empty() ? &entries.at(0) : nullptr;
    for (const json& entry : entries) {
      const auto tags = entry.find("RepoTags");
      if (tags == entry.end() || !tags->is_array()) continue;
      for (const json& tag : *tags) {
        const auto name = tag.get<std::string>();
        names.insert(name);
        if (name == from_.tag || name == from_.tag + ":latest") only = &entry;
      }
    }
    if (only != nullptr) return *only;
    throw from_.tag.empty() && !names.empty() ? several(names) : no_such_tag(names);
  }

  Error no_such_tag(const std::set<std::string>& names) const {
    Error error = failure("not-found", "`{}` has no image `{}`", from_.path.string(), from_.tag);
    return std::move(error).because(names.empty() ? "its images have no names"
                                                  : "it has " + listed(names));
  }

  Error several(const std::set<std::string>& names) const {
    return usage_error("ambiguous", "`{}` holds several images", from_.path.string())
        .because("it has " + listed(names))
        .hint(fmt::format("name one: `{}:{}`", from_.str(), *names.begin()));
  }

  static std::string listed(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names)
      text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
    return text;
  }

  void fetch(std::map<std::string, Descriptor> missing) {
    std::uint64_t total = 0;
    std::set<std::string> names;
    for (const auto& [name, layer] : missing) {
      total += layer.size_bytes;
      names.insert(name);
    }
    if (names.empty()) return;
    Activity activity{progress_, "reading " + from_.path.filename().string(), total};
    members_->read(names, [&](const std::string& name, Source& data) {
      const Descriptor& layer = missing.at(name);
      Store::Staged staged = store_.stage();
      FdSink file{staged.fd()};
      VerifyingSink checked{file, layer.digest, layer.size_bytes, "`" + name + "`"};
      copy(data, checked);
      checked.finish();
      staged.commit(layer.digest);
      activity.advance(layer.size_bytes);
      missing.erase(name);
    });
    if (!missing.empty()) throw lacks(missing.begin()->first);
  }

  std::map<std::string, Descriptor> take_layers(const std::set<std::string>& names) {
    std::map<std::string, Descriptor> layers;
    Activity activity{progress_, "reading " + from_.path.filename().string()};
    members_->read(names, [&](const std::string& name, Source& data) {
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

  Store& store_;
  const ArchivedImage& from_;
  std::string platform_;
  Progress& progress_;
  std::unique_ptr<ArchiveMembers> members_;
};

}  // namespace

std::optional<ArchivedImage> ArchivedImage::parse(std::string_view text) {
  for (const Prefix& prefix : kPrefixes) {
    if (!text.starts_with(prefix.text)) continue;
    text.remove_prefix(prefix.text.size());
    const std::size_t colon = text.find(':');
    ArchivedImage image{prefix.format, fs::path(text.substr(0, colon)), {}};
    if (colon != std::string_view::npos) image.tag = text.substr(colon + 1);
    return image;
  }
  return std::nullopt;
}

std::string ArchivedImage::str() const {
  std::string text;
  for (const Prefix& prefix : kPrefixes) {
    if (prefix.format == format) text = prefix.text;
  }
  return text + path.string() + (tag.empty() ? "" : ":" + tag);
}

Image fetch_image(Store& store, const ArchivedImage& from, std::string_view platform,
                  const std::optional<Digest>& manifest, Progress& progress) {
  return while_doing("reading the image `" + from.str() + "`", [&] {
    Reader reader{store, from, platform, progress};
    return from.format == Output::Format::docker_archive ? reader.docker()
                                                         : reader.layout(manifest);
  });
}

}  // namespace mlenv
