#include "recipes/machine_config.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/recipe_reader.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::array<std::string_view, 4> kConfigKeys = {"mirrors", "snapshots", "cuda-index",
                                                         "storage"};
constexpr std::string_view kMirrorExample = "[https://mirror.example.org/team]";
constexpr std::array<std::string_view, 3> kPlaceholders = {"{path}", "{file}", "{sha256}"};

/// Whether `HOST[:PORT][/PATH]` can stand in front of a repository.
bool is_location(const std::string& text) {
  try {
    return Reference::parse(text + "/x").host() == text.substr(0, text.find('/'));
  } catch (const Error&) {
    return false;
  }
}

class ConfigReader {
 public:
  ConfigReader(MachineConfig& config, Mistakes& mistakes, const fs::path& shown_path)
      : config_(config), values_(mistakes), shown_path_(shown_path) {}

  void read(const YamlNode& root) {
    for (const auto& [key, value] : values_.members(root, "config.yaml", kConfigKeys)) {
      if (key == "mirrors") {
        all_mirrors(*value);
      } else if (key == "snapshots") {
        snapshots(*value);
      } else if (key == "storage") {
        read_storage_names(values_, *value, config_.storage);
      } else {
        const auto place = values_.text(*value, "`cuda-index`", "https://mirror.example/cuda");
        if (place) config_.cuda_index = place->text;
      }
    }
  }

 private:
  void all_mirrors(const YamlNode& node) {
    for (const auto& [prefix, list] : values_.members(node, "`mirrors`", {})) {
      mirrors(prefix, *list);
    }
  }

  void snapshots(const YamlNode& node) {
    for (const Placed& url : list_or_one(node, "`snapshots`", "[https://snapshot.example]")) {
      std::string fault = fault_of_snapshot(url.text);
      if (fault.empty()) {
        config_.snapshots.push_back(url.text);
      } else {
        mistake(url, std::move(fault));
      }
    }
  }

  void mistake(const Placed& place, std::string message) {
    YamlNode node;
    node.line = place.line;
    node.column = place.column;
    values_.mistake(node, std::move(message));
  }

  std::vector<Placed> list_or_one(const YamlNode& node, std::string_view what,
                                  std::string_view example) {
    if (node.kind != YamlNode::Kind::scalar) return values_.texts(node, what, example);
    return {{node.text, node.line, node.column}};
  }

  void mirrors(const std::string& prefix, const YamlNode& list) {
    RegistryRule rule;
    rule.prefix = prefix;
    rule.said_in = shown_path_.string();
    if (!is_location(prefix.starts_with("*.") ? prefix.substr(2) : prefix)) {
      values_.mistake(list, fmt::format("`{}` is not a registry: HOST, HOST:PORT or HOST/PATH, "
                                        "with `*.` in front for all hosts below one",
                                        prefix));
      return;
    }
    for (const Placed& url : list_or_one(list, "a registry's mirrors", kMirrorExample)) {
      std::optional<RegistryMirror> one = mirror(url);
      if (!one) continue;
      if (one->location == prefix) {  // itself, which is asked anyway: how is what this says
        rule.plain_http = one->plain_http;
      } else {
        rule.mirrors.push_back(*std::move(one));
      }
    }
    config_.mirrors.push_back(std::move(rule));
  }

  std::optional<RegistryMirror> mirror(const Placed& url) {
    RegistryMirror found;
    std::string_view rest = url.text;
    const std::size_t scheme = rest.find("://");
    if (scheme != std::string_view::npos) {
      found.plain_http = rest.starts_with("http:");
      const bool known = found.plain_http || rest.starts_with("https:");
      rest = known ? rest.substr(scheme + 3) : std::string_view{};
    }
    while (rest.ends_with('/')) rest.remove_suffix(1);
    found.location = rest;
    if (is_location(found.location)) return found;
    mistake(url,
            "a mirror is a registry, `https://HOST[:PORT][/PATH]`; `http://` where it has no TLS");
    return std::nullopt;
  }

  MachineConfig& config_;
  ValueReader values_;
  const fs::path& shown_path_;
};

/// Later rules for a prefix take the place of earlier ones.
void take_over(std::vector<RegistryRule>& rules, std::vector<RegistryRule> later) {
  for (RegistryRule& rule : later) {
    const auto same = std::find_if(rules.begin(), rules.end(), [&](const RegistryRule& one) {
      return one.prefix == rule.prefix;
    });
    if (same == rules.end()) {
      rules.push_back(std::move(rule));
    } else {
      *same = std::move(rule);
    }
  }
}

/// Of a file that is another tool's: what may not be read says nothing to us. Anything else might
/// block a registry, and is no reason to do without.
void pass_over_if_forbidden(const Error& error) {
  if (error.code() != "permission") throw;
  log::debug("passed over: {}", error.what());
}

std::optional<std::string> read_if_allowed(const fs::path& path) {
  try {
    return read_small_file_if_exists(path, size_limit::kMachineConfig);
  } catch (const Error& error) {
    pass_over_if_forbidden(error);
    return std::nullopt;
  }
}

std::vector<fs::path> list_if_allowed(const fs::path& folder) {
  try {
    return list_folder(folder);
  } catch (const Error& error) {
    pass_over_if_forbidden(error);
    return {};
  }
}

std::vector<RegistryRule> read_conf(const fs::path& path) {
  const std::optional<std::string> text = read_if_allowed(path);
  if (!text) return {};
  return parse_registries_conf(*text, path);
}

std::vector<RegistryRule> containers_rules(const MachineFolders& folders) {
  const fs::path system = folders.root / "etc/containers";
  const fs::path own = folders.home.empty() ? fs::path{} : folders.home / ".config/containers";
  fs::path main = folders.registries_conf;
  std::error_code unseen;
  const bool users = !own.empty() && fs::exists(own / "registries.conf", unseen);
  if (main.empty()) main = (users ? own : system) / "registries.conf";
  std::vector<RegistryRule> rules = read_conf(main);
  for (const fs::path& folder : {system, own}) {
    // A user's own file takes the place of all that is the machine's.
    if (folder.empty() || (users && folder == system)) continue;
    for (const fs::path& file : list_if_allowed(folder / "registries.conf.d")) {
      if (file.extension() == ".conf") take_over(rules, read_conf(file));
    }
  }
  return rules;
}

std::vector<RegistryRule> containerd_rules(const MachineFolders& folders) {
  std::vector<RegistryRule> rules;
  for (const fs::path& folder : list_if_allowed(folders.root / "etc/containerd/certs.d")) {
    const std::optional<std::string> text = read_if_allowed(folder / "hosts.toml");
    const std::string host = folder.filename().string();
    // `_default` is for all hosts that have none; mirrors of everything are not guessed at.
    if (!text || !is_location(host)) continue;
    rules.push_back(parse_hosts_toml(*text, host, folder / "hosts.toml"));
  }
  return rules;
}

}  // namespace

std::string fault_of_snapshot(std::string_view url) {
  const bool known =
      url.starts_with("https://") || url.starts_with("http://") || url.starts_with("file:///");
  if (!known || url.ends_with("://") || has_control(url) ||
      url.find(' ') != std::string_view::npos) {
    return "an archive of snapshots is a URL that starts with `https://`, `http://` or `file:///`";
  }
  for (std::size_t at = url.find('{'); at != std::string_view::npos; at = url.find('{', at + 1)) {
    const std::string_view rest = url.substr(at);
    const bool fits = std::any_of(kPlaceholders.begin(), kPlaceholders.end(),
                                  [&](std::string_view one) { return rest.starts_with(one); });
    if (!fits) return "`{path}`, `{file}` and `{sha256}` are what may be filled in";
  }
  return {};
}

MachineConfig parse_config(std::string_view text, const fs::path& shown_path) {
  Mistakes mistakes{shown_path, std::string(text)};
  const YamlDocument document = parse_yaml(text);
  for (const YamlMistake& one : document.mistakes) mistakes.add(one.line, one.column, one.message);
  MachineConfig config;
  if (document.complete) ConfigReader{config, mistakes, shown_path}.read(document.root);
  if (!mistakes.empty()) throw mistakes.error("config-invalid");
  return config;
}

MachineConfig read_config(const fs::path& path) {
  const auto text = read_small_file_if_exists(path, size_limit::kMachineConfig);
  return text ? parse_config(*text, path) : MachineConfig{};
}

MachineConfig read_machine_config(const MachineFolders& folders) {
  MachineConfig config = read_config(folders.root / "etc/mlenv/config.yaml");
  if (folders.config.empty()) return config;
  MachineConfig own = read_config(folders.config / "mlenv/config.yaml");
  take_over(config.mirrors, std::move(own.mirrors));
  config.snapshots.insert(config.snapshots.begin(), own.snapshots.begin(), own.snapshots.end());
  if (!own.cuda_index.empty()) config.cuda_index = std::move(own.cuda_index);
  for (auto& [name, path] : own.storage) config.storage[name] = std::move(path);
  return config;
}

RegistryHosts read_registry_hosts(const MachineFolders& folders) {
  RegistryHosts hosts;
  hosts.rules.push_back(read_machine_config(folders).mirrors);
  hosts.rules.push_back(containers_rules(folders));
  hosts.rules.push_back(containerd_rules(folders));
  if (!folders.home.empty()) {
    hosts.certificates.push_back(folders.home / ".config/containers/certs.d");
    hosts.certificates.push_back(folders.home / ".config/docker/certs.d");
  }
  for (const char* folder : {"etc/containers/certs.d", "etc/docker/certs.d"}) {
    hosts.certificates.push_back(folders.root / folder);
  }
  return hosts;
}

}  // namespace mlenv
