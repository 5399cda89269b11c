#include "images/oci.hpp"

#include <chrono>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/size_limits.hpp"
#include "images/image_json.hpp"

namespace mlenv {
namespace {

using nlohmann::json;

constexpr std::string_view kTitleAnnotation = "dev.mlenv.title";

std::string rfc3339(std::int64_t epoch_s) {
  namespace chr = std::chrono;
  const chr::sys_seconds time{chr::seconds{epoch_s}};
  const auto day = chr::floor<chr::days>(time);
  const chr::year_month_day date{day};
  const chr::hh_mm_ss clock{time - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

json to_json(const Descriptor& descriptor) {
  return {{"mediaType", descriptor.media_type},
          {"digest", descriptor.digest.str()},
          {"size", descriptor.size_bytes}};
}

/// Empty values are left out, as Docker and umoci do.
json to_json(const ImageConfig& config) {
  json out = json::object();
  if (!config.env.empty()) out["Env"] = config.env;
  if (!config.entrypoint.empty()) out["Entrypoint"] = config.entrypoint;
  if (!config.command.empty()) out["Cmd"] = config.command;
  if (!config.workdir.empty()) out["WorkingDir"] = config.workdir;
  if (!config.user.empty()) out["User"] = config.user;
  if (!config.labels.empty()) out["Labels"] = config.labels;
  return out;
}

/// Runs `read`; what nlohmann-json and Digest say about its input becomes `bad-image`.
template <typename Read>
auto reading(std::string_view what, Read&& read) {
  try {
    return read();
  } catch (const json::exception& error) {
    throw failure("bad-image", "the {} is not one that mlenv can read", what).because(error.what());
  } catch (const Error& error) {
    if (error.code() == "bad-image" || error.code() == "too-large") throw;
    throw failure("bad-image", "the {} is not one that mlenv can read", what).because(error.what());
  }
}

/// An absent key and `null` (as Docker writes it) both leave `out` alone.
template <typename T>
void read_optional(const json& value, const char* key, T& out) {
  const auto found = value.find(key);
  if (found != value.end() && !found->is_null()) found->get_to(out);
}

ImageConfig read_settings(const json& value) {
  ImageConfig out;
  read_optional(value, "architecture", out.architecture);
  read_optional(value, "variant", out.variant);
  read_optional(value, "os", out.os);
  const auto config = value.find("config");
  if (config == value.end() || config->is_null()) return out;
  read_optional(*config, "Env", out.env);
  read_optional(*config, "Entrypoint", out.entrypoint);
  read_optional(*config, "Cmd", out.command);
  read_optional(*config, "WorkingDir", out.workdir);
  read_optional(*config, "User", out.user);
  read_optional(*config, "Labels", out.labels);
  return out;
}

std::string read_title(const json& layer) {
  const auto annotations = layer.find("annotations");
  if (annotations == layer.end() || !annotations->is_object()) return {};
  std::string title;
  read_optional(*annotations, kTitleAnnotation.data(), title);
  return title;
}

json read_manifest(std::string_view text) {
  json manifest = parse_image_json(text, "manifest");
  const auto version = manifest.find("schemaVersion");
  if (version == manifest.end() || *version != 2) {
    throw failure("bad-image", "the manifest's schemaVersion is not 2")
        .hint("copy the image with `skopeo copy --format oci` and use the copy");
  }
  if (!manifest.contains("config") || !manifest.contains("layers")) {
    throw failure("bad-image", "the manifest has no config or no layers: it is not an image's");
  }
  // Which of the two it is would be each reader's own choice.
  if (manifest.contains("manifests")) {
    throw failure("bad-image", "the manifest is an image's and an index at once");
  }
  return manifest;
}

void check_config(const Descriptor& named, std::string_view config) {
  const Digest digest = Digest::of(config);
  if (named.digest == digest && named.size_bytes == config.size()) return;
  throw failure("bad-image", "the config is not the one that the manifest names")
      .because(fmt::format("manifest: `{}` ({} bytes), config: `{}` ({} bytes)", named.digest.str(),
                           named.size_bytes, digest.str(), config.size()));
}

}  // namespace

Image compose_image(const ImageConfig& config, const std::vector<Layer>& layers,
                    std::int64_t created) {
  const std::string when = rfc3339(created);
  json diff_ids = json::array();
  json history = json::array();
  json blobs = json::array();
  for (const Layer& layer : layers) {
    diff_ids.push_back(layer.diff_id.str());
    json line{{"created", when}, {"created_by", "mlenv"}};
    json blob = to_json(layer.blob);
    if (!layer.title.empty()) {
      line["comment"] = layer.title;
      blob["annotations"] = {{kTitleAnnotation, layer.title}};
    }
    history.push_back(std::move(line));
    blobs.push_back(std::move(blob));
  }
  json value{{"architecture", config.architecture},
             {"os", config.os},
             {"config", to_json(config)},
             {"created", when},
             {"history", std::move(history)},
             {"rootfs", {{"type", "layers"}, {"diff_ids", std::move(diff_ids)}}}};
  if (!config.variant.empty()) value["variant"] = config.variant;
  std::string config_text = canonical(value);
  const Descriptor config_descriptor{std::string(kConfigType), Digest::of(config_text),
                                     config_text.size()};
  std::string manifest = canonical({{"schemaVersion", 2},
                                    {"mediaType", kManifestType},
                                    {"config", to_json(config_descriptor)},
                                    {"layers", std::move(blobs)}});
  const Descriptor descriptor{std::string(kManifestType), Digest::of(manifest), manifest.size()};
  return {
      std::move(manifest), std::move(config_text), descriptor, config_descriptor, layers, config};
}

ImageConfig parse_settings(std::string_view config) {
  return reading("config", [&] { return read_settings(parse_image_json(config, "config")); });
}

Descriptor config_of_manifest(std::string_view manifest) {
  Descriptor config =
      reading("manifest", [&] { return read_descriptor(read_manifest(manifest).at("config")); });
  // Nothing of it has to be fetched to know that.
  if (config.size_bytes <= size_limit::kImageConfig) return config;
  throw failure("too-large", "the image's config has {} bytes, says the manifest",
                config.size_bytes)
      .because(fmt::format("mlenv reads {} of one", size_limit::kImageConfig));
}

Image parse_image(std::string manifest, std::string config) {
  const json outer = reading("manifest", [&] { return read_manifest(manifest); });
  const Descriptor config_descriptor =
      reading("manifest", [&] { return read_descriptor(outer.at("config")); });
  check_config(config_descriptor, config);

  std::vector<Layer> layers;
  ImageConfig settings;
  reading("config", [&] {
    const json inner = parse_image_json(config, "config");
    settings = read_settings(inner);
    const json& diff_ids = inner.at("rootfs").at("diff_ids");
    const json& blobs = outer.at("layers");
    if (diff_ids.size() != blobs.size()) {
      throw failure("bad-image", "the manifest names {} layers, the config {}", blobs.size(),
                    diff_ids.size());
    }
    for (std::size_t i = 0; i < blobs.size(); ++i) {
      layers.push_back({read_descriptor(blobs[i]),
                        Digest::parse(diff_ids[i].get_ref<const std::string&>()), 0,
                        read_title(blobs[i])});
    }
  });

  std::string type{kManifestType};
  reading("manifest", [&] { read_optional(outer, "mediaType", type); });
  Descriptor descriptor{std::move(type), Digest::of(manifest), manifest.size()};
  return {std::move(manifest), std::move(config), std::move(descriptor),
          config_descriptor,   std::move(layers), std::move(settings)};
}

}  // namespace mlenv
