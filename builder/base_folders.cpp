#include "builder/base_folders.hpp"

#include <nlohmann/json.hpp>

#include "builder/recall.hpp"
#include "images/unpack_stream.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSchema = "mlenv.folders/1";

bool recall_folders(const Store& store, const Digest& key, BaseFolders& folders) {
  return recall(store, key, kSchema, [&](const nlohmann::json& record) {
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
  remember(store, key, kSchema, {{"folders", items}});
}

}  // namespace

BaseFolders base_folders(Store& store, const Layer& base) {
  const Digest key = Digest::of("mlenv folders of " + base.diff_id.str());
  BaseFolders folders;
  if (recall_folders(store, key, folders)) return folders;
  folders.clear();
  read_layer(
      store, base, [](std::uint64_t) {},
      [&](const TarEntry& entry, Source&) {
        const bool link = entry.type == TarEntry::Type::symlink;
        if (!link && entry.type != TarEntry::Type::folder) return;
        if (utf8_fault(entry.path + entry.link) != std::string_view::npos) return;
        folders[entry.path] = {entry.link, entry.mode, entry.uid, entry.gid};
      });
  remember_folders(store, key, folders);
  return folders;
}

}  // namespace mlenv
