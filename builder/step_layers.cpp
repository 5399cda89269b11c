#include "builder/step_layers.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace mlenv {
namespace {
constexpr std::string_view kSchema = "mlenv.layers/1";
}  // namespace

std::optional<std::vector<Layer>> find_layers(const Store& store, const Digest& key) {
  const std::optional<std::string> text = store.find_key(key);
  if (!text) return std::nullopt;
  std::vector<Layer> layers;
  try {
    const nlohmann::json value = parse_json(*text, "a step's record");
    if (value.at("schema") != kSchema) return std::nullopt;
    for (const nlohmann::json& item : value.at("layers")) {
      Layer layer{.blob = {item.at("mediaType").get<std::string>(),
                           Digest::parse(item.at("digest").get<std::string>()),
                           item.at("size_bytes").get<std::uint64_t>()},
                  .diff_id = Digest::parse(item.at("diff_id").get<std::string>()),
                  .tar_bytes = item.at("tar_bytes").get<std::uint64_t>(),
                  .title = item.at("title").get<std::string>()};
      if (!store.has(layer.blob.digest)) return std::nullopt;
      layers.push_back(std::move(layer));
    }
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // another version's record: made again
  } catch (const Error&) {
    return std::nullopt;
  }
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
  store.put_key(key, canonical({{"schema", kSchema}, {"layers", items}}));
}

}  // namespace mlenv
