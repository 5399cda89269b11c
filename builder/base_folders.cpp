#include "builder/base_folders.hpp"

#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "images/unpack_stream.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSchema = "mlenv.folders/1";

std::optional<BaseFolders> remembered(const Store& store, const Digest& key) {
  const std::optional<std::string> text = store.find_key(key);
  if (!text) return std::nullopt;
  try {
    const nlohmann::json value = parse_json(*text, "a base's folders");
    if (value.at("schema") != kSchema) return std::nullopt;
    BaseFolders folders;
    for (const auto& [path, item] : value.at("folders").items()) {
      folders[path] = {item.at("link").get<std::string>(), item.at("mode").get<std::uint32_t>(),
                       item.at("uid").get<std::uint64_t>(), item.at("gid").get<std::uint64_t>()};
    }
    return folders;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // another version's record: made again
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

BaseFolders base_folders(Store& store, const Layer& base) {
  const Digest key = Digest::of("mlenv folders of " + base.diff_id.str());
  if (std::optional<BaseFolders> known = remembered(store, key)) return *std::move(known);
  BaseFolders folders;
  nlohmann::json record = nlohmann::json::object();
  read_layer(
      store, base, [](std::uint64_t) {},
      [&](const TarEntry& entry, Source&) {
        const bool link = entry.type == TarEntry::Type::symlink;
        if (!link && entry.type != TarEntry::Type::folder) return;
        if (utf8_fault(entry.path + entry.link) != std::string_view::npos) return;
        folders[entry.path] = {entry.link, entry.mode, entry.uid, entry.gid};
        record[entry.path] = {
            {"link", entry.link}, {"mode", entry.mode}, {"uid", entry.uid}, {"gid", entry.gid}};
      });
  store.put_key(key, canonical({{"schema", kSchema}, {"folders", record}}));
  return folders;
}

}  // namespace mlenv
