#pragma once
// What the forms of an image in files share. For images/archive*.cpp only.
#include <array>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/progress.hpp"
#include "images/archive.hpp"
#include "images/store.hpp"

namespace mlenv {

constexpr std::string_view kLayoutText = R"({"imageLayoutVersion":"1.0.0"})";

/// What a person writes in front of the path.
struct FormatPrefix {
  std::string_view text;
  Output::Format format;
};
inline constexpr std::array kFormatPrefixes{
    FormatPrefix{"oci:", Output::Format::oci},
    FormatPrefix{"oci-archive:", Output::Format::oci_archive},
    FormatPrefix{"docker-archive:", Output::Format::docker_archive},
};

/// Where an OCI layout has a blob.
inline std::string layout_blob_path(const Digest& digest) { return "blobs/sha256/" + digest.hex(); }

/// `host/repository:tag`, as `docker load` and containerd name an image; empty without a tag.
std::string full_name(const Reference& name);

/// Where a link to a file leads, else the path itself.
fs::path real_file(const fs::path& path);

/// One of `image.blobs()`: manifest and config from the image itself, which may be one that no
/// store has; the others from the store, verified while they pass.
void copy_blob(const Store& store, const ImageSet& image, const Digest& digest,
               std::uint64_t size_bytes, Sink& out);

/// The line in index.json of an image, or of an index. `ref_name` is what programs select it by in
/// a layout; empty: none.
nlohmann::json index_entry(const ImageSet& image, const Reference& name,
                           const std::string& ref_name);
std::string index_text(nlohmann::json entries);
/// `index` with the image's entry in it: in the place of the one of the same name, beside all
/// others. Without a tag it replaces the same image without a name. An entry is selected by its
/// tag; where another image has that tag, by its whole name. Throws `bad-image` when `index` is
/// none.
std::string updated_index(const fs::path& index, const ImageSet& image, const Reference& name);

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

/// The OCI layout folder.
void write_layout(const Store& store, const ImageSet& image, const Reference& name,
                  const fs::path& folder, Activity& activity);

}  // namespace mlenv
