#include "images/archive_load.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/inflate.hpp"
#include "base/json.hpp"
#include "images/archive_blobs.hpp"
#include "images/archive_parts.hpp"
#include "images/platform.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

std::optional<Reference> reference_or_none(const std::string& text) {
  try {
    return Reference::parse(text);
  } catch (const Error&) {
    return std::nullopt;  // another tool's words
  }
}

/// As Docker shows it: without the host that goes without saying there, and its `library/`.
std::string familiar(std::string_view name) {
  for (const std::string_view part : {"docker.io/", "library/"}) {
    if (!name.starts_with(part)) break;
    name.remove_prefix(part.size());
  }
  return std::string(name);
}

/// `docker` are the names in Docker's manifest.json, where there is one beside the layout: what
/// index.json calls `docker.io/library/train:v1` is `train:v1` to whoever saved it. A tag alone
/// (`v1`, as skopeo writes it into a layout) names no repository.
std::optional<Reference> entry_name(const EntryNames& names, const std::set<std::string>& docker) {
  const std::string short_name = familiar(names.full_name);
  if (docker.contains(short_name)) return reference_or_none(short_name);
  if (!names.full_name.empty()) return reference_or_none(names.full_name);
  if (names.ref_name.find_first_of("/:") == std::string::npos) return std::nullopt;
  return reference_or_none(names.ref_name);
}

void add_once(std::vector<Reference>& names, std::optional<Reference> name) {
  if (!name) return;
  const bool known = std::any_of(names.begin(), names.end(),
                                 [&](const Reference& one) { return one.str() == name->str(); });
  if (!known) names.push_back(*std::move(name));
}

/// A digest in a name is a promise to who runs the image by it, which an archive's words do not
/// keep.
LoadedImage loaded(ImageSet image, std::vector<Reference> names) {
  const Digest digest = image.digest();
  std::erase_if(names,
                [&](const Reference& name) { return name.digest().value_or(digest) != digest; });
  return {std::move(image), std::move(names)};
}

/// Images that index.json lists, each once.
struct Listed {
  Digest digest;  ///< of a manifest or an index
  std::vector<Reference> names;
};

class Loader {
 public:
  Loader(Store& store, ArchiveBlobs& blobs, const LoadSource& from, const LoadSettings& settings)
      : store_(store), blobs_(blobs), from_(from), settings_(settings) {}

  std::vector<LoadedImage> layout() {
    std::vector<LoadedImage> all;
    for (Listed& one : listed()) {
      if (std::optional<ImageSet> set = image_set(one.digest)) {
        all.push_back(loaded(*std::move(set), std::move(one.names)));
      }
    }
    require_some(all);
    std::vector<std::vector<Reference>> names;
    for (const LoadedImage& one : all) names.push_back(one.names);
    require_one(names);
    std::vector<Descriptor> needed;
    for (const LoadedImage& one : all) {
      for (const Image& image : one.image.images) {
        for (const Layer& layer : image.layers) needed.push_back(layer.blob);
      }
      for (const Artifact& artifact : one.image.artifacts) {
        needed.insert(needed.end(), artifact.blobs.begin(), artifact.blobs.end());
      }
    }
    blobs_.fetch(needed);
    for (const LoadedImage& one : all) put(one.image);
    return all;
  }

  std::vector<LoadedImage> docker() {
    std::vector<json> entries;
    std::vector<std::vector<Reference>> names;
    const json listed = blobs_.document("manifest.json");
    ArchiveBlobs::reading(fmt::format("`manifest.json` of `{}`", blobs_.shown()), [&] {
      std::set<std::string> known;
      for (const json& entry : listed) {
        const std::set<std::string> tags = repo_tags(entry);
        known.insert(tags.begin(), tags.end());
        const std::set<std::string> asked = asked_of(tags);
        if (asked.empty() && !from_.tag.empty()) continue;
        entries.push_back(entry);
        names.emplace_back();
        for (const std::string& tag : asked) add_once(names.back(), reference_or_none(tag));
      }
      if (entries.empty()) throw blobs_.no_such_image(from_.tag, known);
    });
    require_one(names);
    std::vector<Image> images = blobs_.docker_images(entries);
    std::vector<LoadedImage> all;
    for (std::size_t i = 0; i < images.size(); ++i) {
      if (fits(images[i])) all.push_back(loaded(std::move(images[i]), std::move(names[i])));
    }
    require_some(all);
    for (const LoadedImage& one : all) put(one.image);
    return all;
  }

 private:
  std::set<std::string> asked_of(std::set<std::string> tags) const {
    if (from_.tag.empty()) return tags;
    std::erase_if(tags, [&](const std::string& tag) {
      return tag != from_.tag && tag != from_.tag + ":latest";
    });
    return tags;
  }

  /// Entries of index.json that are asked for; those of one name are one image, for several
  /// platforms.
  std::vector<Listed> listed() {
    const json index = blobs_.document("index.json");
    const std::set<std::string> docker = docker_names();
    std::vector<Listed> all;
    ArchiveBlobs::reading(fmt::format("`index.json` of `{}`", blobs_.shown()), [&] {
      std::vector<Group> groups;
      std::set<std::string> known;
      for (const json& entry : index.at("manifests")) {
        const EntryNames names = names_of_entry(entry);
        for (const std::string& name : {names.ref_name, names.full_name}) {
          if (!name.empty()) known.insert(name);
        }
        std::optional<Reference> name = entry_name(names, docker);
        if (is_asked(names, name)) add(groups, entry, std::move(name));
      }
      if (groups.empty()) throw blobs_.no_such_image(from_.tag, known);
      for (Group& group : groups) add(all, digest_of(group), std::move(group.name));
    });
    return all;
  }

  bool is_asked(const EntryNames& names, const std::optional<Reference>& name) const {
    const std::string& tag = from_.tag;
    if (tag.empty() || tag == names.ref_name || tag == names.full_name) return true;
    return name && (tag == name->str() || tag + ":latest" == name->str());
  }

  std::set<std::string> docker_names() {
    std::set<std::string> all;
    if (!blobs_.has_document("manifest.json")) return all;
    const json listed = blobs_.document("manifest.json");
    ArchiveBlobs::reading(fmt::format("`manifest.json` of `{}`", blobs_.shown()), [&] {
      for (const json& entry : listed) all.merge(repo_tags(entry));
    });
    return all;
  }

  struct Group {
    std::optional<Reference> name;
    json entries = json::array();
  };

  static void add(std::vector<Group>& groups, const json& entry, std::optional<Reference> name) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return name && group.name && group.name->str() == name->str();
    });
    if (same != groups.end()) {
      same->entries.push_back(entry);
    } else {
      groups.push_back({std::move(name), json::array({entry})});
    }
  }

  Digest digest_of(const Group& group) const {
    std::set<std::string> digests;
    for (const json& entry : group.entries) digests.insert(entry.at("digest").get<std::string>());
    if (digests.size() == 1) return Digest::parse(*digests.begin());
    return choose_platform(canonical({{"manifests", group.entries}}), blobs_.shown(),
                           settings_.platform);
  }

  static void add(std::vector<Listed>& all, const Digest& digest, std::optional<Reference> name) {
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const Listed& one) { return one.digest == digest; });
    if (at == all.end()) at = all.insert(all.end(), Listed{digest, {}});
    add_once(at->names, std::move(name));
  }

  /// nullopt: of another platform than is asked for.
  std::optional<ImageSet> image_set(const Digest& digest) {
    std::string text = blobs_.blob(digest);
    if (is_index("", text)) return of_index(parse_index(std::move(text)));
    Image image = blobs_.image(std::move(text));
    if (!fits(image)) return std::nullopt;
    return image;
  }

  ImageSet of_index(ImageIndex index) {
    ImageSet set{std::move(index), {}};
    std::size_t present = 0;
    for (const ImageIndex::Entry& part : set.index->entries) {
      if (!blobs_.holds(part.manifest.digest)) continue;
      std::string text = blobs_.blob(part.manifest.digest);
      if (is_artifact(part.platform, text)) {
        set.artifacts.push_back(parse_artifact(std::move(text), part.manifest.media_type));
        ++present;
      } else if (std::optional<Image> image = whole_image(std::move(text))) {
        set.images.push_back(*std::move(image));
        ++present;
      }
    }
    const bool whole = present == set.index->entries.size() && !set.images.empty();
    if (whole && settings_.platform.empty()) return set;
    return one_of(std::move(set));
  }

  /// nullopt where the file holds its manifest alone.
  std::optional<Image> whole_image(std::string manifest) {
    if (!blobs_.holds(config_of_manifest(manifest).digest)) return std::nullopt;
    Image image = blobs_.image(std::move(manifest));
    const bool there =
        std::all_of(image.layers.begin(), image.layers.end(), [&](const Layer& layer) {
          const Digest& digest = layer.blob.digest;
          return blobs_.holds(digest) || store_.has(digest);
        });
    return there ? std::optional(std::move(image)) : std::nullopt;
  }

  ImageSet one_of(ImageSet set) const {
    if (set.images.size() == 1 && settings_.platform.empty()) return std::move(set.images.front());
    const Digest chosen = choose_platform(set.index->bytes, blobs_.shown(), settings_.platform);
    for (Image& image : set.images) {
      if (image.digest() == chosen) return std::move(image);
    }
    throw failure("not-found", "`{}` lists the image `{}`, and does not hold all of it",
                  blobs_.shown(), chosen.str())
        .hint("`--platform` takes another one; or write the file again where all of it is");
  }

  bool fits(const Image& image) const {
    const std::string found = image.settings.os + "/" + image.settings.architecture;
    const std::string& asked = settings_.platform;
    return asked.empty() || asked == found || asked.starts_with(found + "/");
  }

  void require_some(const std::vector<LoadedImage>& all) const {
    if (!all.empty()) return;
    throw failure("not-found", "`{}` has no image for {}", blobs_.shown(), settings_.platform);
  }

  void require_one(const std::vector<std::vector<Reference>>& names_of_each) const {
    if (!settings_.only_one || names_of_each.size() < 2) return;
    std::set<std::string> known;
    for (const std::vector<Reference>& names : names_of_each) {
      for (const Reference& name : names) known.insert(name.str());
    }
    Error error = usage_error("ambiguous", "`{}` holds {} images, and a name is for one",
                              blobs_.shown(), names_of_each.size());
    if (known.empty()) throw std::move(error).because("its images have no names");
    throw std::move(error)
        .because("it has " + quoted_list(known))
        .hint("name one: `" + from_.with_tag(*known.begin()) + "`");
  }

  void put(const ImageSet& set) {
    for (const Artifact& artifact : set.artifacts) store_.put_artifact(artifact);
    for (const Image& image : set.images) store_.put_image(image);
    if (set.index) store_.put_index(*set.index);
  }

  Store& store_;
  ArchiveBlobs& blobs_;
  const LoadSource& from_;
  const LoadSettings& settings_;
};

/// What is no tar in a file: read as it comes, or compressed.
bool must_be_spooled(const LoadSource& from) {
  if (from.is_stdin()) return true;
  std::error_code error;
  const fs::file_status status = fs::status(from.path, error);
  if (!fs::exists(status) || fs::is_directory(status)) return false;
  return !fs::is_regular_file(status) || is_compressed(from.path);
}

fs::path spooled(const TemporaryFolder& scratch, int from, Progress& progress,
                 const std::string& shown) {
  fs::path path = scratch.path() / "archive.tar";
  const Fd to = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  Activity activity{progress, "reading " + shown};
  FdSource source{from};
  FdSink file{to.get()};
  Counted counted{file, activity};
  decompress(source, counted);
  return path;
}

/// A pipe may be somebody's `<(command)`; a device has no end.
Fd open_named(const fs::path& path) {
  Fd fd = open_file(path);
  struct stat status {};
  if (::fstat(fd.get(), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))) {
    throw failure("not-a-file", "`{}` is a device, not an archive", path.string())
        .hint("name an archive's file, an OCI layout's folder, or `-` for standard input");
  }
  return fd;
}

std::vector<LoadedImage> load(Store& store, const LoadSource& from, const LoadSettings& settings,
                              Progress& progress) {
  std::optional<TemporaryFolder> scratch;
  fs::path path = from.path;
  if (must_be_spooled(from)) {
    scratch.emplace(store.scratch());
    const Fd opened = from.is_stdin() ? Fd{} : open_named(path);
    path = spooled(*scratch, opened ? opened.get() : STDIN_FILENO, progress, from.shown());
    if (mlenv::file_size(path) == 0) {
      throw failure("absent", "`{}` is empty", from.shown())
          .hint("`set -o pipefail` shows a failure of the command before `mlenv load -`");
    }
  }
  std::error_code error;
  const auto members = fs::is_directory(path, error) ? open_folder_members(path)
                                                     : open_tar_members(path, from.shown());
  ArchiveBlobs blobs{store, *members, from.shown(), progress};
  Loader loader{store, blobs, from, settings};
  const bool is_layout = members->has("index.json") || !members->has("manifest.json");
  return is_layout ? loader.layout() : loader.docker();
}

}  // namespace

LoadSource LoadSource::parse(std::string_view text) {
  if (const auto named = ArchivedImage::parse(text)) return {named->path, named->tag};
  return {fs::path(text), {}};
}

std::string LoadSource::shown() const { return is_stdin() ? "standard input" : path.string(); }

std::string LoadSource::with_tag(const std::string& wanted) const {
  std::error_code error;
  const bool folder = fs::is_directory(path, error);
  return fmt::format("{}:{}:{}", folder ? "oci" : "oci-archive", path.string(), wanted);
}

std::vector<LoadedImage> load_images(Store& store, const LoadSource& from,
                                     const LoadSettings& settings, Progress& progress) {
  return while_doing(
      "loading images from " + (from.is_stdin() ? from.shown() : "`" + from.shown() + "`"),
      [&] { return load(store, from, settings, progress); });
}

}  // namespace mlenv
