#include "images/image_files.hpp"

#include <fcntl.h>
#include <atomic>
#include <unordered_set>
#include <vector>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/pool.hpp"
#include "images/tree_paths.hpp"
#include "images/unpack_stream.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMostKeptBytes = std::uint64_t{64} << 20U;

/// Counts what all layers together keep in memory: an image may be anybody's.
class Budget {
 public:
  explicit Budget(std::uint64_t bytes) : left_(static_cast<std::int64_t>(bytes)) {}
  void spend(std::size_t bytes) {
    constexpr std::size_t kNode = 64;  // around each
    left_ -= static_cast<std::int64_t>(bytes + kNode);
    if (left_ >= 0) return;
    throw failure("too-large", "the image has more files than mlenv looks through");
  }

 private:
  std::atomic<std::int64_t> left_;
};

/// What one layer says.
struct LayerFiles {
  std::map<std::string, std::string> files;   ///< wanted ones
  std::unordered_set<std::string> replacing;  ///< paths that are no folders here
  std::unordered_set<std::string> opaque;     ///< folders of which lower layers show nothing
  std::map<std::string, std::string> links;   ///< hard links, as tars have them, to their targets
};

/// What is asked, and what it may cost.
struct Search {
  const Wanted& wanted;
  Budget& budget;
};

void replace(const Search& search, LayerFiles& out, std::string path) {
  search.budget.spend(path.size());
  out.replacing.insert(std::move(path));
}

void keep(const Search& search, LayerFiles& out, const std::string& path, std::string content) {
  search.budget.spend(path.size() + content.size());
  out.files.insert_or_assign(path, std::move(content));
}

void take_searched(const Search& search, LayerFiles& out, const TarEntry& entry, Source& data) {
  const std::string_view folder = folder_of(entry.path);
  const std::string_view name = last_part(entry.path);
  if (name == kOpaqueName) {
    search.budget.spend(folder.size());
    out.opaque.emplace(folder);
    return;
  }
  if (name.starts_with(kWhiteoutPrefix)) {
    return replace(search, out, below(folder, name.substr(kWhiteoutPrefix.size())));
  }
  // A later entry takes an earlier one's place.
  out.files.erase(entry.path);
  out.links.erase(entry.path);
  if (entry.type == TarEntry::Type::folder) return;
  replace(search, out, entry.path);
  if (entry.type == TarEntry::Type::hardlink) {
    search.budget.spend(entry.path.size() + entry.link.size());
    out.links.insert_or_assign(entry.path, entry.link);
  }
  const Want want = search.wanted(entry.path);
  if (want == Want::nothing) return;
  const bool is_read = want == Want::content && entry.type == TarEntry::Type::file;
  keep(search, out, entry.path, is_read ? read_all(data, kMostKeptBytes) : std::string{});
}

/// The file that a hard link stands for, over other links; empty where they lead in a circle.
std::string target_of(const std::map<std::string, std::string>& links, std::string path) {
  for (std::size_t steps = 0; steps <= links.size(); ++steps) {
    const auto next = links.find(path);
    if (next == links.end()) return path;
    path = next->second;
  }
  return {};
}

std::string content_of(const fs::path& path, const fs::file_status& status) {
  if (!fs::is_regular_file(status)) return {};
  const Fd fd = open_file(path, O_RDONLY | O_NOFOLLOW);
  FdSource source{fd.get()};
  return read_all(source, kMostKeptBytes);
}

/// The same from an unpacked tree, with overlayfs's marks in place of whiteouts.
void read_tree(const Search& search, const fs::path& root, LayerFiles& out) {
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
      const Want want = fs::is_character_file(status) ? Want::nothing : search.wanted(path);
      if (want != Want::nothing) {
        keep(search, out, path,
             want == Want::content ? content_of(entry.path(), status) : std::string{});
      }
      replace(search, out, std::move(path));
    }
  }
}

void read_entries(const Store& store, const Layer& layer, Progress& progress,
                  const std::function<void(const TarEntry&, Source&)>& take) {
  Activity activity{progress, "reading " + layer.shown_name(), layer.blob.size_bytes};
  read_layer(
      store, layer, [&](std::uint64_t bytes) { activity.advance(bytes); }, take);
}

/// Contents of hard links, whose bytes stand at another name: a second reading where there are any.
void follow_links(const Store& store, const Layer& layer, const Search& search, LayerFiles& out,
                  Progress& progress) {
  std::map<std::string, std::vector<std::string>> names;  // by the file that they stand for
  for (const auto& [path, target] : out.links) {
    if (search.wanted(path) != Want::content) continue;
    names[target_of(out.links, target)].push_back(path);
  }
  out.links.clear();
  if (names.empty()) return;
  read_entries(store, layer, progress, [&](const TarEntry& entry, Source& data) {
    const auto found = names.find(entry.path);
    if (found == names.end() || entry.type != TarEntry::Type::file) return;
    const std::string content = read_all(data, kMostKeptBytes);
    for (const std::string& name : found->second) keep(search, out, name, content);
  });
}

LayerFiles read_blob(const Store& store, const Layer& layer, const Search& search,
                     Progress& progress) {
  LayerFiles out;
  read_entries(store, layer, progress, [&](const TarEntry& entry, Source& data) {
    take_searched(search, out, entry, data);
  });
  follow_links(store, layer, search, out, progress);
  return out;
}

LayerFiles read_files(const Store& store, const Layer& layer, const Search& search,
                      Progress& progress) {
  if (const auto tree = store.find_tree(layer.diff_id)) {
    try {
      LayerFiles out;
      read_tree(search, *tree, out);
      return out;
    } catch (const fs::filesystem_error&) {  // NOLINT(bugprone-empty-catch)
      // Folders that are closed to this user: the blob is not.
    } catch (const Error& error) {
      if (error.code() != "permission") throw;
    }
  }
  return read_blob(store, layer, search, progress);
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
                                               const Wanted& wanted, Progress& progress,
                                               std::uint64_t most_bytes) {
  Budget budget{most_bytes};
  const Search search{wanted, budget};
  std::vector<LayerFiles> layers(image.layers.size());
  Pool pool;
  pool.for_each(layers.size(), [&](std::size_t i) {
    layers[i] = read_files(store, image.layers[i], search, progress);
  });
  std::map<std::string, std::string> files;
  for (LayerFiles& layer : layers) {
    std::erase_if(files, [&](const auto& file) { return !shows(layer, file.first); });
    for (auto& [path, content] : layer.files) files.insert_or_assign(path, std::move(content));
  }
  return files;
}

}  // namespace mlenv
