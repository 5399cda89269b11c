#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/diff_changes.hpp"
#include "cli/diff_text.hpp"

namespace mlenv::cli {
namespace {

using nlohmann::json;

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json side_json(const Side& side) {
  return {{"name", side.name},
          {"kind", side.kind()},
          {"digest", side.digest().str()},
          {"platform", side.platform()}};
}

json package_json(const std::optional<ListedPackage>& package) {
  if (!package) return nullptr;
  return {{"version", package->version},
          {"architecture", text_or_null(package->architecture)},
          {"file", text_or_null(package->file)},
          {"size_bytes", or_null(package->size_bytes)},
          {"digest", package->digest ? json(package->digest->str()) : json(nullptr)}};
}

json packages_json(const std::vector<PackageChange>& changes) {
  json items = json::array();
  for (const PackageChange& one : changes) {
    items.push_back({{"name", one.either().name},
                     {"change", name_of(one.what)},
                     {"from", package_json(one.from)},
                     {"to", package_json(one.to)}});
  }
  return items;
}

void add_values(json& items, const ValueChanges& values) {
  for (const ValueChange& one : values) {
    items.push_back({{"name", one.name}, {"from", or_null(one.from)}, {"to", or_null(one.to)}});
  }
}

const char* place_of(LayerPresence::Where where) {
  switch (where) {
    case LayerPresence::Where::from_only:
      return "from";
    case LayerPresence::Where::to_only:
      return "to";
    case LayerPresence::Where::both_packed_differently:
      return "both-packed-differently";
    case LayerPresence::Where::both:
      break;
  }
  return "both";
}

json layers_json(const std::optional<ImageDiff>& image) {
  if (!image) return nullptr;
  std::vector<Layer> layers;
  for (const LayerPresence& one : image->layers) layers.push_back(one.layer);
  json items = layers_as_json(layers);
  for (std::size_t i = 0; i < layers.size(); ++i) items[i]["in"] = place_of(image->layers[i].where);
  return items;
}

json fetch_json(const SideComparison& comparison) {
  if (comparison.fetch) {
    return {{"packages", comparison.fetch->packages},
            {"layers", nullptr},
            {"bytes", comparison.fetch->bytes}};
  }
  if (comparison.image) {
    return {{"packages", nullptr},
            {"layers", comparison.image->fetch_layers},
            {"bytes", comparison.image->fetch_bytes}};
  }
  return nullptr;
}

}  // namespace

void add_installed(json& answer, const EnvironmentDiff& installed) {
  answer["wheels"] = packages_json(installed.wheels);
  answer["debs"] = packages_json(installed.debs);
}

json diff_json(const Side& from, const Side& to, const SideComparison& comparison) {
  json settings = json::array();
  add_values(settings, comparison.packages.values);
  if (comparison.image) add_values(settings, comparison.image->values);
  json answer = {{"schema", "mlenv.diff/1"},        {"same", comparison.same},
                 {"from", side_json(from)},         {"to", side_json(to)},
                 {"settings", std::move(settings)}, {"layers", layers_json(comparison.image)},
                 {"fetch", fetch_json(comparison)}};
  add_installed(answer, comparison.packages);
  add_findings(answer,
               changes::changes_in(comparison.packages,
                                   comparison.image ? comparison.image->values : ValueChanges{}));
  return answer;
}

}  // namespace mlenv::cli
