#include "images/archive_input.hpp"

#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/archive_blobs.hpp"
#include "images/archive_parts.hpp"
#include "images/platform.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

/// One image of those in the file.
class Chooser {
 public:
  Chooser(ArchiveBlobs& blobs, const ArchivedImage& from, std::string_view platform)
      : blobs_(blobs), from_(from), platform_(platform) {}

  std::string manifest() {
    const json index = blobs_.document("index.json");
    std::optional<Digest> digest;
    ArchiveBlobs::reading("`index.json` of `" + blobs_.shown() + "`",
                          [&] { digest = choose(index); });
    std::string text = blobs_.blob(*digest);
    if (!is_index("", text)) return text;
    ArchiveBlobs::reading(from_.str(),
                          [&] { digest = choose_platform(text, from_.str(), platform_); });
    return blobs_.blob(*digest);
  }

  json docker_entry() {
    const json entries = blobs_.document("manifest.json");
    json entry;
    ArchiveBlobs::reading("`manifest.json`", [&] { entry = chosen_entry(entries); });
    return entry;
  }

 private:
  Digest choose(const json& index) const {
    json fitting = json::array();
    std::set<std::string> names;
    std::set<std::string> digests;
    for (const json& entry : index.at("manifests")) {
      const auto [tag, name] = names_of_entry(entry);
      if (!tag.empty()) names.insert(tag);
      if (!from_.tag.empty() && from_.tag != tag && from_.tag != name) continue;
      digests.insert(entry.at("digest").get<std::string>());
      fitting.push_back(entry);
    }
    if (digests.size() == 1) return Digest::parse(*digests.begin());
    if (digests.empty()) throw blobs_.no_such_image(from_.tag, names);
    if (names.size() > 1 && from_.tag.empty()) throw several(names);
    return choose_platform(canonical({{"manifests", fitting}}), from_.str(), platform_);
  }

  json chosen_entry(const json& entries) const {
    std::set<std::string> names;
    const json* only = entries.size() == 1 && from_.tag.empty() ? &entries.at(0) : nullptr;
    for (const json& entry : entries) {
      for (const std::string& name : repo_tags(entry)) {
        names.insert(name);
        if (name == from_.tag || name == from_.tag + ":latest") only = &entry;
      }
    }
    if (only != nullptr) return *only;
    throw from_.tag.empty() && !names.empty() ? several(names)
                                              : blobs_.no_such_image(from_.tag, names);
  }

  Error several(const std::set<std::string>& names) const {
    return usage_error("ambiguous", "`{}` holds several images", blobs_.shown())
        .because("it has " + quoted_list(names))
        .hint(fmt::format("name one: `{}:{}`", from_.str(), *names.begin()));
  }

  ArchiveBlobs& blobs_;
  const ArchivedImage& from_;
  std::string platform_;
};

}  // namespace

std::optional<ArchivedImage> ArchivedImage::parse(std::string_view text) {
  for (const FormatPrefix& prefix : kFormatPrefixes) {
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
  for (const FormatPrefix& prefix : kFormatPrefixes) {
    if (prefix.format == format) text = prefix.text;
  }
  return text + path.string() + (tag.empty() ? "" : ":" + tag);
}

Image fetch_image(Store& store, const ArchivedImage& from, std::string_view platform,
                  const std::optional<Digest>& manifest, Progress& progress) {
  return while_doing("reading the image `" + from.str() + "`", [&] {
    const auto members = from.format == Output::Format::oci ? open_folder_members(from.path)
                                                            : open_tar_members(from.path);
    ArchiveBlobs blobs{store, *members, from.path.string(), progress};
    Chooser chooser{blobs, from, platform};
    if (from.format == Output::Format::docker_archive) {
      Image image = blobs.docker_images({chooser.docker_entry()}).front();
      store.put_image(image);
      return image;
    }
    Image image = blobs.image(manifest && blobs.holds(*manifest) ? blobs.blob(*manifest)
                                                                 : chooser.manifest());
    blobs.fetch(layers_of(image));
    store.put_image(image);
    return image;
  });
}

}  // namespace mlenv
