#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "recipes/text.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv {
namespace {

struct Known {
  std::string_view name;
  std::string_view asks;  ///< the word that makes it tell its version
};
constexpr std::array<Known, 11> kEngines = {{{"apptainer", "--version"},
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

/// `"cdiVersion"`, `"kind"` and names of `"devices"`, of JSON or of nvidia-ctk's YAML, which has
/// one key a line.
CdiFile cdi_file(const FactSources& from, const fs::path& path) {
  using Names = std::vector<std::string>;
  const Text text = file_text(from, path);
  CdiFile file{path.string(), unknown<std::string>(text.source), unknown<Names>(text.source)};
  if (!text) return file;
  if (path.extension() == ".json") {
    try {
      const nlohmann::json root = parse_json(*text, path.string());
      file.kind = known(root.at("kind").get<std::string>(), text.source);
      Names names;
      for (const auto& device : root.at("devices")) names.push_back(device.at("name"));
      file.devices = known(std::move(names), text.source);
    } catch (const Error& error) {
      file.kind = unknown<std::string>(error.what());
      file.devices = unknown<Names>(error.what());
    } catch (const nlohmann::json::exception&) {
      file.devices = unknown<Names>(text.source + ": not understood");
      if (!file.kind) file.kind = unknown<std::string>(file.devices.source);
    }
    return file;
  }
  file.kind = named_value(text, "kind", ':');
  Names names;
  bool devices = false;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.empty() && line.front() != ' ' && line.front() != '-') {
      devices = line.starts_with("devices:");
    }
    // A device's own name, not that of a hook or an edit below it.
    const std::string_view inner = trim(line);
    const bool own = line.find_first_not_of(" -") <= 4;
    if (!devices || !own) continue;
    const std::string_view key = inner.starts_with("- ") ? trim(inner.substr(2)) : inner;
    if (const auto name = line_value(key, "name", ':')) names.push_back(*name);
  }
  file.devices = known(std::move(names), text.source);
  return file;
}

}  // namespace

Fact<std::vector<Engine>> probe_engines(const FactSources& from) {
  std::vector<Engine> engines;
  for (const Known& one : kEngines) {
    if (const auto path = from.find(one.name)) {
      Engine engine{std::string(one.name), path->string(), {}};
      engine.version =
          derived<std::string>(from.ask({engine.path, std::string(one.asks)}), version_in);
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
