#include "images/archive.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/tar.hpp"
#include "images/archive_parts.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

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
  void add_blob(const std::string& path, const Store& store, const ImageSet& image,
                const Digest& digest, std::uint64_t size_bytes) {
    begin_file(path, size_bytes);
    copy_blob(store, image, digest, size_bytes, out_);
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

/// Docker's own index (`docker save` since 25 writes the same beside an OCI layout); layers may be
/// compressed.
std::string docker_manifest(const Image& image, const Reference& name) {
  json layers = json::array();
  for (const Layer& layer : image.layers) layers.push_back(layout_blob_path(layer.blob.digest));
  json tags = json::array();
  if (!name.tag().empty()) tags.push_back(full_name(name));
  json entry{{"Config", layout_blob_path(image.config_descriptor.digest)},
             {"RepoTags", std::move(tags)},
             {"Layers", std::move(layers)}};
  return canonical(json::array({std::move(entry)}));
}

void write_tar(const Store& store, const ImageSet& image, const Reference& name,
               Output::Format format, Sink& out) {
  TarFile tar{out};
  // In the order of their names.
  tar.add_folder("blobs");
  tar.add_folder("blobs/sha256");
  for (const auto& [digest, size_bytes] : image.blobs()) {
    tar.add_blob(layout_blob_path(digest), store, image, digest, size_bytes);
  }
  tar.add_text("index.json", index_text(json::array({index_entry(image, name, name.tag())})));
  if (format == Output::Format::docker_archive) {
    tar.add_text("manifest.json", docker_manifest(image.images.front(), name));
  }
  tar.add_text("oci-layout", kLayoutText);
  tar.finish();
}

/// A device, pipe or the like, or a link to one: its place is not ours to take.
bool is_special(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status);
}

/// Calls `write` with where the archive's bytes go.
template <typename Write>
void with_sink(const Output& output, Write&& write) {
  if (output.is_stdout() || is_special(output.path)) {
    const Fd opened = output.is_stdout() ? Fd{} : open_file(output.path, O_WRONLY);
    FdSink sink{opened ? opened.get() : STDOUT_FILENO};
    return write(sink);
  }
  AtomicFile file{real_file(output.path)};
  write(file);
  file.commit();
}

std::string activity_name(const Output& output) {
  const std::string name = output.path.filename().string();
  return "writing " + (output.is_stdout() || name.empty() ? output.shown() : name);
}

}  // namespace

void copy_blob(const Store& store, const ImageSet& image, const Digest& digest,
               std::uint64_t size_bytes, Sink& out) {
  for (const Image& one : image.images) {
    if (digest == one.digest()) return out.write(as_bytes(one.manifest));
    if (digest == one.config_descriptor.digest) return out.write(as_bytes(one.config));
  }
  const auto source = store.open(digest);
  VerifyingSink checked{out, digest, size_bytes, "the blob `" + digest.str() + "`"};
  copy(*source, checked);
  checked.finish();
}

void write_output(const Store& store, const ImageSet& image, const Reference& name,
                  const Output& output, Progress& progress) {
  output.check();
  if (image.index) output.require_index();
  image.require_whole();
  const std::string where = output.is_stdout() ? output.shown() : "`" + output.shown() + "`";
  while_doing("writing the image to " + where, [&] {
    std::uint64_t total = 0;
    for (const auto& [digest, size_bytes] : image.blobs()) total += size_bytes;
    Activity activity{progress, activity_name(output), total};
    if (output.format == Output::Format::oci) {
      write_layout(store, image, name, output.path, activity);
    } else {
      with_sink(output, [&](Sink& out) {
        Counted counted{out, activity};
        write_tar(store, image, name, output.format, counted);
      });
    }
  });
}

}  // namespace mlenv
