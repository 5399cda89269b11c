#include "images/image_diff.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace mlenv {
namespace {

using nlohmann::json;
using Values = std::map<std::string, std::string>;

/// The words that users know these by.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNames = {
    {{"Cmd", "command"},
     {"Entrypoint", "entrypoint"},
     {"WorkingDir", "workdir"},
     {"User", "user"},
     {"StopSignal", "stop signal"},
     {"ExposedPorts", "exposed ports"},
     {"Volumes", "volumes"},
     {"Healthcheck", "health check"}}};

std::string setting_name(const std::string& key) {
  const auto name =
      std::find_if(kNames.begin(), kNames.end(), [&](const auto& one) { return one.first == key; });
  return name == kNames.end() ? key : std::string(name->second);
}

bool is_nothing(const json& value) {
  return value.is_null() || ((value.is_structured() || value.is_string()) && value.empty());
}

std::string shown_value(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return canonical(value);
  std::string text;
  for (const json& word : value) text += (text.empty() ? "" : " ") + canonical(word);
  return text;
}

/// Everything of the object but keys in `apart`, which are compared otherwise.
Values values_of(const json& object, const std::set<std::string>& apart) {
  Values out;
  if (!object.is_object()) return out;
  for (const auto& [key, value] : object.items()) {
    if (is_nothing(value) || apart.contains(key)) continue;
    out[setting_name(key)] = shown_value(value);
  }
  return out;
}

Values by_name(const std::vector<std::string>& env) {
  Values out;
  for (const std::string& variable : env) {
    const std::size_t sign = variable.find('=');
    out[variable.substr(0, sign)] =
        sign == std::string::npos ? std::string{} : variable.substr(sign + 1);
  }
  return out;
}

void compare_configs(ValueChanges& out, const Image& from, const Image& to) {
  const json before = parse_json(from.config, "config");
  const json after = parse_json(to.config, "config");
  const json none = json::object();
  const auto part = [&](const json& config) {
    const auto found = config.find("config");
    return found == config.end() ? none : *found;
  };
  compare_values(out, "", values_of(before, {"config", "rootfs", "history"}),
                 values_of(after, {"config", "rootfs", "history"}));
  compare_values(out, "", values_of(part(before), {"Env", "Labels"}),
                 values_of(part(after), {"Env", "Labels"}));
  compare_values(out, "env", by_name(from.settings.env), by_name(to.settings.env));
  compare_values(out, "label", from.settings.labels, to.settings.labels);
}

std::set<Digest> blobs_of(const Image& image) {
  std::set<Digest> out;
  for (const Layer& layer : image.layers) out.insert(layer.blob.digest);
  return out;
}

std::set<Digest> tars_of(const Image& image) {
  std::set<Digest> out;
  for (const Layer& layer : image.layers) out.insert(layer.diff_id);
  return out;
}

void compare_layers(ImageDiff& out, const Image& from, const Image& to) {
  using Where = LayerPresence::Where;
  const std::set<Digest> blobs = blobs_of(from);
  const std::set<Digest> tars_before = tars_of(from);
  const std::set<Digest> tars_after = tars_of(to);
  std::set<Digest> seen;
  for (const Layer& layer : from.layers) {
    if (tars_after.contains(layer.diff_id) || !seen.insert(layer.diff_id).second) continue;
    out.layers.push_back({Where::from_only, layer});
  }
  for (const Layer& layer : to.layers) {
    if (!seen.insert(layer.diff_id).second) continue;
    const bool is_known = tars_before.contains(layer.diff_id);
    const bool is_fetched = !blobs.contains(layer.blob.digest);
    out.layers.push_back({!is_known    ? Where::to_only
                          : is_fetched ? Where::both_packed_differently
                                       : Where::both,
                          layer});
    if (!is_fetched) continue;
    ++out.fetch_layers;
    out.fetch_bytes += layer.blob.size_bytes;
  }
}

}  // namespace

ImageDiff diff_images(const Image& from, const Image& to) {
  ImageDiff out;
  out.same_files =
      std::equal(from.layers.begin(), from.layers.end(), to.layers.begin(), to.layers.end(),
                 [](const Layer& a, const Layer& b) { return a.diff_id == b.diff_id; });
  compare_layers(out, from, to);
  if (from.digest() == to.digest()) return out;
  compare_configs(out.values, from, to);
  const bool is_told = !out.values.empty() || !out.same_files || out.fetch_layers > 0;
  if (!is_told) {
    compare_value(out.values, "manifest", from.digest().brief(), to.digest().brief());
  }
  return out;
}

}  // namespace mlenv
