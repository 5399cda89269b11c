#include "builder/recall.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace mlenv {

bool recall(const Store& store, const Digest& key, std::string_view schema,
            const std::function<bool(const nlohmann::json&)>& read) {
  const std::optional<std::string> text = store.find_key(key);
  if (!text) return false;
  try {
    const nlohmann::json record = parse_json(*text, "a record of the store");
    return record.at("schema") == schema && read(record);
  } catch (const nlohmann::json::exception&) {
    return false;
  } catch (const Error&) {
    return false;
  }
}

void remember(Store& store, const Digest& key, std::string_view schema, nlohmann::json record) {
  record["schema"] = schema;
  store.put_key(key, canonical(record));
}

}  // namespace mlenv
