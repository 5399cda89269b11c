// Other tools' files about registries.
#include <algorithm>

#include "base/error.hpp"
#include "recipes/machine_config.hpp"
#include "recipes/toml.hpp"

namespace mlenv {
namespace {

TomlFile as_file(std::string_view text, const fs::path& shown_path) {
  return {shown_path, std::string(text), "config-invalid",
          "the file is another tool's, which would not understand it either: correct it there"};
}

/// The tables of an array of tables; none where it is absent.
std::vector<const TomlValue*> tables(const TomlReader& reader, const TomlValue& in,
                                     const std::string& key) {
  std::vector<const TomlValue*> found;
  const TomlValue* const list = reader.optional_member(in, key, TomlKind::list);
  if (list == nullptr) return found;
  for (const TomlValue& item : list->items) {
    if (item.kind != TomlKind::table) reader.fail(item, "`" + key + "` is a list of tables");
    found.push_back(&item);
  }
  return found;
}

RegistryMirror::Use use_of(const TomlReader& reader, const TomlValue& table) {
  using Use = RegistryMirror::Use;
  const std::string word = reader.optional_text(table, "pull-from-mirror");
  if (word == "digest-only") return Use::digests;
  if (word == "tag-only") return Use::tags;
  if (word.empty() || word == "all") return Use::all;
  reader.fail(*table.find("pull-from-mirror"),
              "`pull-from-mirror` is `all`, `digest-only` or `tag-only`");
}

RegistryRule read_rule(const TomlReader& reader, const TomlValue& table) {
  RegistryRule rule;
  rule.said_in = reader.file().shown_path.string();
  rule.location = reader.optional_text(table, "location");
  rule.prefix = reader.optional_text(table, "prefix");
  if (rule.prefix.empty()) rule.prefix = rule.location;
  if (rule.prefix.empty()) reader.fail(table, "a registry has a `prefix` or a `location`");
  if (rule.location == rule.prefix) rule.location.clear();
  rule.insecure = reader.optional_flag(table, "insecure", false);
  rule.blocked = reader.optional_flag(table, "blocked", false);
  const bool digests = reader.optional_flag(table, "mirror-by-digest-only", false);
  for (const TomlValue* one : tables(reader, table, "mirror")) {
    RegistryMirror mirror;
    mirror.location = reader.text(*one, "location");
    mirror.insecure = reader.optional_flag(*one, "insecure", false);
    mirror.use = digests ? RegistryMirror::Use::digests : use_of(reader, *one);
    rule.mirrors.push_back(std::move(mirror));
  }
  return rule;
}

/// `https://host:5000/v2/team` → `host:5000/team`; empty where the path is none that can be put
/// into a reference.
std::string location_of(std::string_view url, bool override_path) {
  const std::size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  while (url.ends_with('/')) url.remove_suffix(1);
  const std::size_t slash = url.find('/');
  if (slash == std::string_view::npos) return std::string(url);
  std::string_view path = url.substr(slash);
  if (path == "/v2") return std::string(url.substr(0, slash));
  if (!override_path || !path.starts_with("/v2/")) return {};
  path.remove_prefix(3);
  return std::string(url.substr(0, slash)) + std::string(path);
}

bool may(const TomlReader& reader, const TomlValue& table, const std::string& what) {
  if (table.find("capabilities") == nullptr) return true;
  const std::vector<std::string> words = reader.texts(table, "capabilities");
  return std::find(words.begin(), words.end(), what) != words.end();
}

}  // namespace

std::vector<RegistryRule> parse_registries_conf(std::string_view text, const fs::path& shown_path) {
  const TomlReader reader{as_file(text, shown_path)};
  std::vector<RegistryRule> rules;
  const TomlValue root = parse_toml(reader.file());
  for (const TomlValue* table : tables(reader, root, "registry")) {
    rules.push_back(read_rule(reader, *table));
  }
  return rules;
}

RegistryRule parse_hosts_toml(std::string_view text, std::string_view host,
                              const fs::path& shown_path) {
  const TomlReader reader{as_file(text, shown_path)};
  const TomlValue root = parse_toml(reader.file());
  RegistryRule rule;
  rule.prefix = host;
  rule.said_in = shown_path.string();
  const std::string server = reader.optional_text(root, "server");
  rule.location = location_of(server, false);
  if (rule.location == rule.prefix) rule.location.clear();
  rule.plain_http = server.starts_with("http://");
  rule.skip_verify = reader.optional_flag(root, "skip_verify", false);
  const TomlValue* const hosts = reader.optional_member(root, "host", TomlKind::table);
  if (hosts == nullptr) return rule;
  // In the file's order, which the map has lost.
  std::vector<std::pair<int, const std::string*>> order;
  for (const auto& [url, table] : hosts->members) order.emplace_back(table.line, &url);
  std::sort(order.begin(), order.end());
  for (const auto& [line, url] : order) {
    const TomlValue& table = reader.member(*hosts, *url, TomlKind::table);
    RegistryMirror mirror;
    mirror.location = location_of(*url, reader.optional_flag(table, "override_path", false));
    if (mirror.location.empty() || !may(reader, table, "pull")) continue;
    mirror.plain_http = url->starts_with("http://");
    mirror.skip_verify = reader.optional_flag(table, "skip_verify", false);
    if (mirror.location == rule.prefix && rule.location.empty()) {  // itself, which is asked anyway
      rule.plain_http = rule.plain_http || mirror.plain_http;
      rule.skip_verify = rule.skip_verify || mirror.skip_verify;
      continue;
    }
    if (!may(reader, table, "resolve")) mirror.use = RegistryMirror::Use::digests;
    rule.mirrors.push_back(std::move(mirror));
  }
  return rule;
}

}  // namespace mlenv
