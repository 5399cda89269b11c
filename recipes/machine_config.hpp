#pragma once
// How this machine is set up: mlenv's own config.yaml, and what other tools' files say of
// registries (docs/registry.md, "Mirrors"; docs/recipe.md, "Where inputs come from").
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "images/registry_hosts.hpp"
#include "recipes/storage_names.hpp"

namespace mlenv {

/// `mlenv/config.yaml` of $XDG_CONFIG_HOME, or of /etc.
struct MachineConfig {
  std::vector<RegistryRule> mirrors;
  std::vector<std::string> snapshots;  ///< as `is_snapshot_url` has them
  std::string cuda_index;  ///< NVIDIA's redistributables: URL or folder; empty: not said
  StorageNames storage;
  friend bool operator==(const MachineConfig&, const MachineConfig&) = default;
};

/// Throws one `config-invalid` (usage) that lists every mistake with its place and a caret.
MachineConfig parse_config(std::string_view text, const fs::path& shown_path);
/// Nothing where there is no such file.
MachineConfig read_config(const fs::path& path);

/// Why `url` names no archive of snapshots; empty where it does: http, https or file, with
/// `{path}`,
/// `{file}` or `{sha256}` in the places of what is asked for, else the root of a Debian archive.
std::string fault_of_snapshot(std::string_view url);

/// The `[[registry]]` tables of a registries.conf (containers-registries.conf(5), version 2):
/// prefix, location, insecure, blocked, mirror-by-digest-only, mirror (location, insecure,
/// pull-from-mirror). Other keys are passed over. Throws `config-invalid` (usage).
std::vector<RegistryRule> parse_registries_conf(std::string_view text, const fs::path& shown_path);

/// The rule of a containerd `certs.d/HOST/hosts.toml` (its docs/hosts.md): hosts that may pull,
/// those that may not resolve for digests alone; server, skip_verify. Hosts at a path are
/// understood where it is `/v2/…` with `override_path`, and passed over else; so are keys that are
/// about certificates and headers. Throws `config-invalid` (usage).
RegistryRule parse_hosts_toml(std::string_view text, std::string_view host,
                              const fs::path& shown_path);

/// Folders that these files are looked for in.
struct MachineFolders {
  fs::path root = "/";
  fs::path home;             ///< empty: none
  fs::path config;           ///< $XDG_CONFIG_HOME; empty: none
  fs::path registries_conf;  ///< $CONTAINERS_REGISTRIES_CONF; empty: the usual places
};

/// The machine's `etc/mlenv/config.yaml` and the user's over it: a mirror's prefix or a storage's
/// name that both have is as the user's has it, the user's snapshots come first. Nothing where
/// there is no such file. Throws as parse_config.
MachineConfig read_machine_config(const MachineFolders& folders);

/// Rules in this order: mlenv's config.yaml; registries.conf (the user's with the user's drop-ins,
/// else the machine's with those of both: a later one's rule for a prefix takes an earlier one's
/// place); containerd's hosts.toml. Other tools' files that may not be read are passed over. And
/// the folders of certificates. Throws `config-invalid` (usage).
RegistryHosts read_registry_hosts(const MachineFolders& folders);

}  // namespace mlenv
