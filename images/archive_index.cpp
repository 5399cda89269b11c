// index.json of an OCI layout.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "images/archive_parts.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr const char* kRefName = "org.opencontainers.image.ref.name";
/// What containerd and buildkit read the whole name from.
constexpr const char* kFullName = "io.containerd.image.name";

std::string annotation(const json& entry, const char* key) {
  const auto annotations = entry.find("annotations");
  if (annotations == entry.end() || !annotations->is_object()) return {};
  return annotations->value(key, "");
}

bool is_replaced(const json& old, const ImageSet& image, const std::string& name) {
  const json& digest = old.at("digest");  // throws when it is no descriptor
  const std::string old_name = annotation(old, kFullName);
  const std::string old_ref = annotation(old, kRefName);
  if (!name.empty()) return old_name == name || (old_name.empty() && old_ref == name);
  return old_name.empty() && old_ref.empty() && digest == image.digest().str();
}

/// Without the entry that is replaced; all else that it says is kept.
json read_index(const fs::path& index, const ImageSet& image, const std::string& name) {
  const auto text = read_small_file_if_exists(index, size_limit::kLayoutIndex);
  if (!text) return {{"manifests", json::array()}};
  try {
    json parsed = parse_json(*text, index.string());
    json kept = json::array();
    for (const json& old : parsed.at("manifests")) {
      if (!is_replaced(old, image, name)) kept.push_back(old);
    }
    parsed["manifests"] = std::move(kept);
    return parsed;
  } catch (const json::exception& error) {
    throw failure("bad-image", "`{}` is not an OCI index", index.string())
        .because(error.what())
        .hint("write to another folder");
  }
}

std::string full_index_text(json index) {
  index["schemaVersion"] = 2;
  index["mediaType"] = kIndexType;
  return canonical(index);
}

}  // namespace

std::string full_name(const Reference& name) {
  if (name.tag().empty()) return {};
  return (name.host().empty() ? "" : name.host() + "/") + name.repository() + ":" + name.tag();
}

json index_entry(const ImageSet& image, const Reference& name, const std::string& ref_name) {
  // An index has no platform of its own.
  json entry = image.index ? json{{"mediaType", image.descriptor().media_type},
                                  {"digest", image.digest().str()},
                                  {"size", image.descriptor().size_bytes}}
                           : platform_entry(image.images.front());
  if (!ref_name.empty()) {
    entry["annotations"] = {{kRefName, ref_name}, {kFullName, full_name(name)}};
  }
  return entry;
}

std::string index_text(json entries) {
  return full_index_text({{"manifests", std::move(entries)}});
}

std::string updated_index(const fs::path& index, const ImageSet& image, const Reference& name) {
  json all = read_index(index, image, full_name(name));
  json& entries = all["manifests"];
  const bool tag_is_taken = std::any_of(entries.begin(), entries.end(), [&](const json& other) {
    return annotation(other, kRefName) == name.tag();
  });
  entries.push_back(index_entry(image, name, tag_is_taken ? full_name(name) : name.tag()));
  return full_index_text(std::move(all));
}

}  // namespace mlenv
