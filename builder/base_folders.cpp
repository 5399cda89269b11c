#include "builder/base_folders.hpp"

#include <nlohmann/json.hpp>

#include "builder/recall.hpp"
#include "images/unpack_stream.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kFoldersSchema = "mlenv.folders/1";

bool recall_folders(const Store& store, const Digest& key, BaseFolders& folders) {
  return recall(store, key, kFoldersSchema, [&](const nlohmann::json& record) {
    for (const auto& [path, item] : record.at("folders").items()) {
      folders[path] = {item.at("link").get<std::string>(), item.at("mode").get<std::uint32_t>(),
                       item.at("uid").get<std::uint64_t>(), item.at("gid").get<std::uint64_t>()};
    }
    return true;
  });
}

void remember_folders(Store& store, const Digest& key, const BaseFolders& folders) {
  nlohmann::json items = nlohmann::json::object();
  for (const auto& [path, one] : folders) {
    items[path] = {{"link", one.link}, {"mode", one.mode}, {"uid", one.uid}, {"gid", one.gid}};
  }
  remember(store, key, kFoldersSchema, {{"folders", items}});
}

/// Forgets what is below `path`.
void forget_below(BaseFolders& folders, const std::string& path) {
  const std::string prefix = path.empty() ? "" : path + '/';
  auto at = folders.lower_bound(prefix);
  while (at != folders.end() && at->first.starts_with(prefix)) at = folders.erase(at);
}

void forget(BaseFolders& folders, const std::string& path) {
  folders.erase(path);
  forget_below(folders, path);
}

/// One entry of an upper layer: it replaces or hides what was there (image-spec layer.md).
void take(BaseFolders& folders, const TarEntry& entry) {
  constexpr std::string_view kWhiteout = ".wh.";
  const std::size_t slash = entry.path.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : entry.path.substr(0, slash);
  const std::string name = entry.path.substr(slash == std::string::npos ? 0 : slash + 1);
  if (name == ".wh..wh..opq") return forget_below(folders, folder);
  if (name.starts_with(kWhiteout)) {
    const std::string hidden = name.substr(kWhiteout.size());
    return forget(folders, folder.empty() ? hidden : folder + '/' + hidden);
  }
  if (entry.type != TarEntry::Type::folder) forget(folders, entry.path);
  const bool link = entry.type == TarEntry::Type::symlink;
  if (!link && entry.type != TarEntry::Type::folder) return;
  if (utf8_fault(entry.path + entry.link) != std::string_view::npos) return;
  folders[entry.path] = {entry.link, entry.mode, entry.uid, entry.gid};
}

}  // namespace

BaseFolders base_folders(Store& store, const std::vector<Layer>& base) {
  std::string text = "mlenv folders of";
  for (const Layer& layer : base) text += ' ' + layer.diff_id.str();
  const Digest key = Digest::of(text);
  BaseFolders folders;
  if (recall_folders(store, key, folders)) return folders;
  folders.clear();
  for (const Layer& layer : base) {
    read_layer(
        store, layer, [](std::uint64_t) {},
        [&](const TarEntry& entry, Source&) { take(folders, entry); });
  }
  remember_folders(store, key, folders);
  return folders;
}

}  // namespace mlenv
