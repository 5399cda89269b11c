#include "images/image_files.hpp"

#include <fcntl.h>
#include <unordered_set>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/pool.hpp"
#include "images/tree_paths.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;

/// What one layer says.
struct LayerFiles {
  std::map<std::string, std::string> files;   ///< wanted ones
  std::unordered_set<std::string> replacing;  ///< paths that are no folders here
  std::unordered_set<std::string> opaque;     ///< folders of which lower layers show nothing
};

class TarReader {
 public:
  TarReader(const Wanted& wanted, LayerFiles& out) : wanted_(wanted), out_(out) {}

  void take(const TarEntry& entry, Source& data) {
    const std::string_view folder = folder_of(entry.path);
    const std::string_view name = last_part(entry.path);
    if (name == kOpaqueName) {
      out_.opaque.emplace(folder);
    } else if (name.starts_with(kWhiteoutPrefix)) {
      out_.replacing.insert(below(folder, name.substr(kWhiteoutPrefix.size())));
    } else if (entry.type != TarEntry::Type::folder) {
      out_.replacing.insert(entry.path);
      if (wanted_(entry.path)) out_.files.insert_or_assign(entry.path, content(entry, data));
    }
  }

 private:
  static std::string content(const TarEntry& entry, Source& data) {
    return entry.type == TarEntry::Type::file ? read_all(data, kMostBytes) : std::string{};
  }

  const Wanted& wanted_;
  LayerFiles& out_;
};

std::string content_of(const fs::path& path, const fs::file_status& status) {
  if (!fs::is_regular_file(status)) return {};
  const Fd fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  FdSource source{fd.get()};
  return read_all(source, kMostBytes);
}

/// The same from an unpacked tree, with overlayfs's marks in place of whiteouts.
void read_tree(const fs::path& root, const Wanted& wanted, LayerFiles& out) {
  std::vector<std::string> folders = {""};
  while (!folders.empty()) {
    const std::string folder = std::move(folders.back());
    folders.pop_back();
    if (has_opaque_mark(root / folder)) out.opaque.insert(folder);
    for (const fs::directory_entry& entry : fs::directory_iterator{root / folder}) {
      std::string path = below(folder, entry.path().filename().string());
      const fs::file_status status = entry.symlink_status();
      if (fs::is_directory(status)) {
        folders.push_back(std::move(path));
        continue;
      }
      if (!fs::is_character_file(status) && wanted(path)) {
        out.files.insert_or_assign(path, content_of(entry.path(), status));
      }
      out.replacing.insert(std::move(path));
    }
  }
}

LayerFiles read_blob(const Store& store, const Layer& layer, const Wanted& wanted,
                     Progress& progress) {
  LayerFiles out;
  Activity activity{progress,
                    "reading " + (layer.title.empty() ? layer.blob.digest.brief() : layer.title),
                    layer.blob.size_bytes};
  TarReader reader{wanted, out};
  read_layer(
      store, layer, [&](std::uint64_t bytes) { activity.advance(bytes); },
      [&](const TarEntry& entry, Source& data) { reader.take(entry, data); });
  return out;
}

LayerFiles read_files(const Store& store, const Layer& layer, const Wanted& wanted,
                      Progress& progress) {
  if (const auto tree = store.find_tree(layer.diff_id)) {
    try {
      LayerFiles out;
      read_tree(*tree, wanted, out);
      return out;
    } catch (const fs::filesystem_error&) {  // NOLINT(bugprone-empty-catch)
      // Folders that are closed to this user: the blob is not.
    } catch (const Error& error) {
      if (error.code() != "permission") throw;
    }
  }
  return read_blob(store, layer, wanted, progress);
}

/// Whether the layer leaves the path that a lower one holds in sight.
bool shows(const LayerFiles& layer, const std::string& path) {
  if (layer.replacing.contains(path) || layer.opaque.contains("")) return false;
  for (std::string_view at = folder_of(path); !at.empty(); at = folder_of(at)) {
    const std::string folder{at};
    if (layer.replacing.contains(folder) || layer.opaque.contains(folder)) return false;
  }
  return true;
}

}  // namespace

std::map<std::string, std::string> image_files(const Store& store, const Image& image,
                                               const Wanted& wanted, Progress& progress) {
  std::vector<LayerFiles> layers(image.layers.size());
  Pool pool;
  pool.for_each(layers.size(), [&](std::size_t i) {
    layers[i] = read_files(store, image.layers[i], wanted, progress);
  });
  std::map<std::string, std::string> files;
  for (LayerFiles& layer : layers) {
    std::erase_if(files, [&](const auto& file) { return !shows(layer, file.first); });
    for (auto& [path, content] : layer.files) files.insert_or_assign(path, std::move(content));
  }
  return files;
}

}  // namespace mlenv
