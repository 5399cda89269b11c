#pragma once
// Environment variables: the one table, from which docs/settings.md is made, and the only place
// that reads them.
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/files.hpp"
#include "images/registry_hosts.hpp"
#include "recipes/machine_config.hpp"

namespace mlenv::cli {

struct Variable {
  std::string_view name;
  std::string_view meaning;
};
std::span<const Variable> variables();

/// nullopt when unset or empty.
std::optional<std::string> variable(std::string_view name);

/// All that are set, for what passes some of them on.
std::map<std::string, std::string> all_variables();

/// $MLENV_STORE, else $XDG_DATA_HOME/mlenv, else ~/.local/share/mlenv.
fs::path store_folder();
/// $XDG_CACHE_HOME/mlenv, else ~/.cache/mlenv.
fs::path cache_folder();
/// $XDG_CONFIG_HOME, else ~/.config.
fs::path config_folder();
/// config.yaml, the user's over the machine's. Throws `config-invalid` (usage).
MachineConfig machine_config();
/// What this machine's files say of registries, read once. Throws as `read_registry_hosts`.
const RegistryHosts& registry_hosts();
/// SOURCE_DATE_EPOCH, else 0. Throws `bad-setting` (usage) when it is not a number.
std::int64_t source_date_epoch();

}  // namespace mlenv::cli
