#include "builder/step_layers.hpp"

#include <nlohmann/json.hpp>

#include "builder/recall.hpp"

namespace mlenv {
namespace {
constexpr std::string_view kLayersSchema = "mlenv.layers/1";
}  // namespace

std::optional<std::vector<Layer>> find_layers(const Store& store, const Digest& key) {
  std::vector<Layer> layers;
  const bool known = recall(store, key, kLayersSchema, [&](const nlohmann::json& record) {
    for (const nlohmann::json& item : record.at("layers")) {
      Layer layer{.blob = {item.at("mediaType").get<std::string>(),
                           Digest::parse(item.at("digest").get<std::string>()),
                           item.at("size_bytes").get<std::uint64_t>()},
                  .diff_id = Digest::parse(item.at("diff_id").get<std::string>()),
                  .tar_bytes = item.at("tar_bytes").get<std::uint64_t>(),
                  .title = item.at("title").get<std::string>()};
      if (!store.has(layer.blob.digest)) return false;
      layers.push_back(std::move(layer));
    }
    return true;
  });
  if (!known) return std::nullopt;
  return layers;
}

void remember_layers(Store& store, const Digest& key, const std::vector<Layer>& layers) {
  nlohmann::json items = nlohmann::json::array();
  for (const Layer& layer : layers) {
    items.push_back({{"mediaType", layer.blob.media_type},
                     {"digest", layer.blob.digest.str()},
                     {"size_bytes", layer.blob.size_bytes},
                     {"diff_id", layer.diff_id.str()},
                     {"tar_bytes", layer.tar_bytes},
                     {"title", layer.title}});
  }
  remember(store, key, kLayersSchema, {{"layers", items}});
}

}  // namespace mlenv
