#include "cli/settings.hpp"

#include <pwd.h>
#include <unistd.h>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/error.hpp"
#include "recipes/machine_config.hpp"
#include "runner/local/machine.hpp"

namespace mlenv::cli {
namespace {

constexpr std::array kVariables = {
    Variable{"MLENV_STORE", "folder of images, wheels and unpacked layers"},
    Variable{"MLENV_VENDOR", "folder that `mlenv vendor` filled, looked into before all sources"},
    Variable{"MLENV_HOST_FACTS", "facts of a host (`mlenv facts --json`) that runs are judged by"},
    Variable{"MLENV_DEBIAN_SOURCES", "file with apt sources to use instead of the machine's own"},
    Variable{"XDG_DATA_HOME", "the store is below it when MLENV_STORE is not set"},
    Variable{"XDG_CACHE_HOME", "what can be fetched again is kept below it"},
    Variable{"XDG_STATE_HOME", "keys for `mlenv export ssh-config` are below it"},
    Variable{"XDG_CONFIG_HOME", "mlenv/config.yaml below it has your settings, over those of /etc"},
    Variable{"CONTAINERS_REGISTRIES_CONF", "registries.conf to read instead of the usual ones"},
    Variable{"DOCKER_CONFIG", "folder of config.json with registry logins"},
    Variable{"SOURCE_DATE_EPOCH", "time stamp of a new lock's images, seconds since 1970; else 0"},
    Variable{"NO_COLOR", "no colour when set"},
    Variable{"TMPDIR", "where short-lived files go"},
    Variable{"HTTPS_PROXY", "proxy for TLS, as curl reads it (also HTTP_PROXY, NO_PROXY)"},
    Variable{"SSL_CERT_FILE",
             "certificate authorities to trust (also SSL_CERT_DIR, CURL_CA_BUNDLE)"},
    Variable{"HOME", "where the folders above are by default"},
};

/// Empty: there is none.
fs::path home_if_any() {
  if (const std::optional<std::string> folder = variable("HOME")) return *folder;
  const passwd* entry = ::getpwuid(::getuid());  // NOLINT(concurrency-mt-unsafe): before threads
  return entry != nullptr && entry->pw_dir != nullptr ? fs::path(entry->pw_dir) : fs::path{};
}

fs::path home() {
  fs::path folder = home_if_any();
  if (!folder.empty()) return folder;
  throw usage_error("bad-setting", "there is no home folder for user {}", ::getuid())
      .hint("set MLENV_STORE and XDG_CACHE_HOME");
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());  // NOLINT(concurrency-mt-unsafe)
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::map<std::string, std::string> all_variables() { return caller_variables(); }

fs::path store_folder() {
  if (const auto folder = variable("MLENV_STORE")) return fs::absolute(*folder);
  if (const auto folder = variable("XDG_DATA_HOME")) return fs::absolute(*folder) / "mlenv";
  return home() / ".local/share/mlenv";
}

fs::path cache_folder() {
  if (const auto folder = variable("XDG_CACHE_HOME")) return fs::absolute(*folder) / "mlenv";
  return home() / ".cache/mlenv";
}

fs::path config_folder() {
  if (const auto folder = variable("XDG_CONFIG_HOME")) return fs::absolute(*folder);
  const fs::path folder = home_if_any();
  return folder.empty() ? fs::path{} : folder / ".config";
}

MachineConfig machine_config() {
  return read_machine_config({"/", home_if_any(), config_folder(), {}});
}

const RegistryHosts& registry_hosts() {
  static const RegistryHosts hosts = read_registry_hosts(
      {"/", home_if_any(), config_folder(), variable("CONTAINERS_REGISTRIES_CONF").value_or("")});
  return hosts;
}

std::int64_t source_date_epoch() {
  const std::optional<std::string> text = variable("SOURCE_DATE_EPOCH");
  if (!text) return 0;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc{} || rest != end || value < 0) {
    throw usage_error("bad-setting", "SOURCE_DATE_EPOCH is `{}`, not seconds since 1970", *text);
  }
  return value;
}

}  // namespace mlenv::cli
