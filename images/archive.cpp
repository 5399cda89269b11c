#include "images/archive.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/tar.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr const char* kRefName = "org.opencontainers.image.ref.name";
/// What containerd and buildkit read the whole name from.
constexpr const char* kFullName = "io.containerd.image.name";
constexpr std::string_view kLayoutText = R"({"imageLayoutVersion":"1.0.0"})";

struct Prefix {
  std::string_view text;
  Output::Format format;
};
constexpr std::array kPrefixes{
    Prefix{"oci:", Output::Format::oci},
    Prefix{"oci-archive:", Output::Format::oci_archive},
    Prefix{"docker-archive:", Output::Format::docker_archive},
};

std::string full_name(const Reference& name) {
  const std::string repository = (name.host().empty() ? "" : name.host() + "/") + name.repository();
  return name.tag().empty() ? repository : repository + ":" + name.tag();
}

/// Everything that goes under blobs/sha256/, each once, by digest.
std::map<Digest, std::uint64_t> blobs_of(const Image& image) {
  std::map<Digest, std::uint64_t> blobs;
  blobs.emplace(image.manifest_descriptor.digest, image.manifest_descriptor.size_bytes);
  blobs.emplace(image.config_descriptor.digest, image.config_descriptor.size_bytes);
  for (const Layer& layer : image.layers) {
    blobs.emplace(layer.blob.digest, layer.blob.size_bytes);
  }
  return blobs;
}

void copy_blob(const Store& store, const Digest& digest, std::uint64_t size_bytes, Sink& out) {
  const auto source = store.open(digest);
  VerifyingSink checked{out, digest, size_bytes, "the blob `" + digest.str() + "`"};
  copy(*source, checked);
  checked.finish();
}

json index_entry(const Image& image, const Reference& name) {
  json entry{
      {"mediaType", image.manifest_descriptor.media_type},
      {"digest", image.digest().str()},
      {"size", image.manifest_descriptor.size_bytes},
      {"platform", {{"architecture", image.settings.architecture}, {"os", image.settings.os}}}};
  if (!name.tag().empty()) {
    entry["annotations"] = {{kRefName, name.tag()}, {kFullName, full_name(name)}};
  }
  return entry;
}

std::string index_text(json entries) {
  return canonical(
      {{"schemaVersion", 2}, {"mediaType", kIndexType}, {"manifests", std::move(entries)}});
}

std::string tag_of(const json& entry) {
  const auto annotations = entry.find("annotations");
  if (annotations == entry.end() || !annotations->is_object()) return {};
  return annotations->value(kRefName, "");
}

/// Those that are there already, but for the tag that is being written (and, for an image without a
/// tag, the same image).
json other_entries(const fs::path& index, const json& entry) {
  json kept = json::array();
  const auto text = read_file_if_exists(index);
  if (!text) return kept;
  const std::string tag = tag_of(entry);
  try {
    const json parsed = parse_json(*text, index.string());
    for (const json& old : parsed.at("manifests")) {
      const bool same_image = old.at("digest") == entry.at("digest");
      if (tag.empty() ? !(same_image && tag_of(old).empty()) : tag_of(old) != tag) {
        kept.push_back(old);
      }
    }
  } catch (const json::exception& error) {
    throw failure("bad-image", "`{}` is not an OCI index", index.string())
        .because(error.what())
        .hint("write to another folder");
  }
  return kept;
}

class Counted final : public Sink {
 public:
  Counted(Sink& next, Activity& activity) : next_(next), activity_(activity) {}
  void write(ByteView data) override {
    next_.write(data);
    activity_.advance(data.size());
  }

 private:
  Sink& next_;
  Activity& activity_;
};

void write_folder(const Store& store, const Image& image, const Reference& name,
                  const fs::path& folder, Activity& activity) {
  const fs::path blobs = folder / "blobs" / "sha256";
  make_folders(blobs);
  for (const auto& [digest, size_bytes] : blobs_of(image)) {
    const fs::path target = blobs / digest.hex();
    std::error_code error;
    if (fs::file_size(target, error) == size_bytes && !error) {
      activity.advance(size_bytes);
      continue;
    }
    AtomicFile file{target};
    Counted counted{file, activity};
    copy_blob(store, digest, size_bytes, counted);
    file.commit();
  }
  const fs::path layout = folder / "oci-layout";
  if (!read_file_if_exists(layout)) write_file(layout, kLayoutText);
  // Two writers of one folder: each must see the other's entry.
  const FileLock lock = FileLock::wait(layout, FileLock::Mode::exclusive);
  const json entry = index_entry(image, name);
  json entries = other_entries(folder / "index.json", entry);
  entries.push_back(entry);
  write_file(folder / "index.json", index_text(std::move(entries)));
}

class TarFile {
 public:
  explicit TarFile(Sink& out) : out_(out) {}

  void add_folder(const std::string& path) {
    TarEntry entry;
    entry.type = TarEntry::Type::folder;
    entry.path = path;
    entry.mode = 0755;
    out_.write(tar_header(entry));
  }
  void add_text(const std::string& path, std::string_view text) {
    begin_file(path, text.size());
    out_.write(as_bytes(text));
    end_file(text.size());
  }
  void add_blob(const std::string& path, const Store& store, const Digest& digest,
                std::uint64_t size_bytes) {
    begin_file(path, size_bytes);
    copy_blob(store, digest, size_bytes, out_);
    end_file(size_bytes);
  }
  void finish() { out_.write(tar_end()); }

 private:
  void begin_file(const std::string& path, std::uint64_t size_bytes) {
    TarEntry entry;
    entry.path = path;
    entry.size_bytes = size_bytes;
    out_.write(tar_header(entry));
  }
  void end_file(std::uint64_t size_bytes) { out_.write(Bytes(tar_padding(size_bytes))); }

  Sink& out_;
};

std::string blob_path(const Digest& digest) { return "blobs/sha256/" + digest.hex(); }

/// Docker's own index (`docker save` since 25 writes the same beside an OCI layout); layers may be
/// compressed.
std::string docker_manifest(const Image& image, const Reference& name) {
  json layers = json::array();
  for (const Layer& layer : image.layers) layers.push_back(blob_path(layer.blob.digest));
  json tags = json::array();
  if (!name.tag().empty()) tags.push_back(full_name(name));
  json entry{{"Config", blob_path(image.config_descriptor.digest)},
             {"RepoTags", std::move(tags)},
             {"Layers", std::move(layers)}};
  return canonical(json::array({std::move(entry)}));
}

void write_archive(const Store& store, const Image& image, const Reference& name,
                   const Output& output, Activity& activity) {
  AtomicFile file{output.path};
  Counted counted{file, activity};
  TarFile tar{counted};
  // In the order of their names.
  tar.add_folder("blobs");
  tar.add_folder("blobs/sha256");
  for (const auto& [digest, size_bytes] : blobs_of(image)) {
    tar.add_blob(blob_path(digest), store, digest, size_bytes);
  }
  tar.add_text("index.json", index_text(json::array({index_entry(image, name)})));
  if (output.format == Output::Format::docker_archive) {
    tar.add_text("manifest.json", docker_manifest(image, name));
  }
  tar.add_text("oci-layout", kLayoutText);
  tar.finish();
  file.commit();
}

}  // namespace

Output Output::parse(std::string_view text) {
  for (const Prefix& prefix : kPrefixes) {
    if (text.starts_with(prefix.text) && text.size() > prefix.text.size()) {
      return {prefix.format, fs::path(text.substr(prefix.text.size()))};
    }
  }
  throw usage_error("bad-output", "`{}` says neither what to write nor where", text)
      .hint("give `oci:DIR`, `oci-archive:FILE` or `docker-archive:FILE`");
}

void write_output(const Store& store, const Image& image, const Reference& name,
                  const Output& output, Progress& progress) {
  while_doing("writing the image to `" + output.path.string() + "`", [&] {
    std::uint64_t total = 0;
    for (const auto& [digest, size_bytes] : blobs_of(image)) total += size_bytes;
    Activity activity{progress, "writing " + output.path.filename().string(), total};
    if (output.format == Output::Format::oci) {
      write_folder(store, image, name, output.path, activity);
    } else {
      write_archive(store, image, name, output, activity);
    }
  });
}

}  // namespace mlenv
