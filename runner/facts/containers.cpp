#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "recipes/text.hpp"
#include "recipes/yaml.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

struct KnownEngine {
  std::string_view name;
  std::string_view asks;  ///< the word that makes it tell its version
};
constexpr std::array<KnownEngine, 11> kKnownEngines = {{{"apptainer", "--version"},
                                                        {"buildah", "--version"},
                                                        {"containerd", "--version"},
                                                        {"crun", "--version"},
                                                        {"docker", "--version"},
                                                        {"enroot", "version"},
                                                        {"nerdctl", "--version"},
                                                        {"nvidia-ctk", "--version"},
                                                        {"podman", "--version"},
                                                        {"runc", "--version"},
                                                        {"singularity", "--version"}}};

/// The first word that starts with a number and has a dot: `28.2.2,` of `Docker version 28.2.2,`.
std::optional<std::string> version_in(std::string_view text) {
  for (std::string_view word : words_of(text)) {
    if (word.starts_with('v')) word.remove_prefix(1);
    while (word.ends_with(',')) word.remove_suffix(1);
    if (!word.empty() && is_digit(word.front()) && word.find('.') != std::string_view::npos) {
      return std::string(word);
    }
  }
  return std::nullopt;
}

using DeviceNames = std::vector<std::string>;

void read_json(const Text& text, CdiFile& file) {
  const nlohmann::json root = parse_json(*text, file.path);
  file.kind = known(root.at("kind").get<std::string>(), text.source);
  DeviceNames names;
  for (const auto& device : root.at("devices")) names.push_back(device.at("name"));
  file.devices = known(std::move(names), text.source);
}

const YamlNode* yaml_member(const YamlNode& map, std::string_view key) {
  for (const YamlMember& one : map.members) {
    if (one.key.text == key) return &one.value;
  }
  return nullptr;
}

void read_yaml(const Text& text, CdiFile& file) {
  const YamlDocument document = parse_yaml(*text);
  if (!document.complete) {
    const std::string why =
        document.mistakes.empty() ? "not understood" : document.mistakes.front().message;
    file.kind = unknown<std::string>(text.source + ": " + why);
    file.devices = unknown<DeviceNames>(file.kind.source);
    return;
  }
  const YamlNode* const kind = yaml_member(document.root, "kind");
  if (kind != nullptr) file.kind = known(kind->text, text.source);
  const YamlNode* const devices = yaml_member(document.root, "devices");
  if (devices == nullptr) return;
  DeviceNames names;
  for (const YamlNode& device : devices->items) {
    const YamlNode* const name = yaml_member(device, "name");
    if (name == nullptr) return;
    names.push_back(name->text);
  }
  file.devices = known(std::move(names), text.source);
}

/// Kind, and names of the devices; what it does not say is unknown.
CdiFile cdi_file(const FactSources& from, const fs::path& path) {
  const Text text = file_text(from, path);
  const std::string why = text ? text.source + ": not understood" : text.source;
  CdiFile file{path.string(), unknown<std::string>(why), unknown<DeviceNames>(why)};
  if (!text) return file;
  if (path.extension() != ".json") {
    read_yaml(text, file);
    return file;
  }
  try {
    read_json(text, file);
  } catch (const Error& error) {
    file.kind = unknown<std::string>(error.what());
    file.devices = unknown<DeviceNames>(error.what());
  } catch (const nlohmann::json::exception&) {  // what was read before it stays
  }
  return file;
}

}  // namespace

Text engine_version(const FactSources& from, const std::string& program, const std::string& asks) {
  return derived<std::string>(from.ask({program, asks}), version_in);
}

Fact<std::vector<Engine>> probe_engines(const FactSources& from) {
  std::vector<Engine> engines;
  for (const KnownEngine& one : kKnownEngines) {
    if (const auto path = from.find(one.name)) {
      Engine engine{std::string(one.name), path->string(), {}};
      engine.version = engine_version(from, engine.path, std::string(one.asks));
      engines.push_back(std::move(engine));
    }
  }
  return known(std::move(engines), "PATH");
}

Fact<std::vector<CdiFile>> probe_cdi(const FactSources& from) {
  std::vector<CdiFile> files;
  for (const char* folder : {"/etc/cdi", "/run/cdi", "/var/run/cdi"}) {
    // /var/run is a link to /run wherever it is not a folder of its own.
    if (std::string_view(folder) == "/var/run/cdi" && present(from, "/run/cdi")) continue;
    const Texts names = names_in(from, folder);
    if (!names) {
      if (present(from, folder)) return unknown<std::vector<CdiFile>>(names.source);
      continue;
    }
    for (const std::string& name : *names) {
      const fs::path extension = fs::path(name).extension();
      if (extension != ".json" && extension != ".yaml") continue;
      files.push_back(cdi_file(from, fs::path(folder) / name));
    }
  }
  return known(std::move(files), "/etc/cdi, /run/cdi");
}

}  // namespace mlenv
