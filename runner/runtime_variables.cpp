#include "runner/runtime_variables.hpp"

#include <algorithm>
#include <array>

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

/// Programs and libraries that they start and load, folders of theirs, language.
constexpr std::array<std::string_view, 6> kAllNames{"PATH", "LD_LIBRARY_PATH", "HOME", "TMPDIR",
                                                    "LANG", "LANGUAGE"};
constexpr std::array<std::string_view, 2> kAllPrefixes{"XDG_", "LC_"};

/// Who asks, a daemon elsewhere and the way to it, systemd's session for control groups.
constexpr std::array<std::string_view, 16> kEngine{
    "USER",           "LOGNAME",      "SSH_AUTH_SOCK",      "DBUS_SESSION_BUS_ADDRESS",
    "STORAGE_DRIVER", "STORAGE_OPTS", "REGISTRY_AUTH_FILE", "SSL_CERT_FILE",
    "SSL_CERT_DIR",   "HTTP_PROXY",   "HTTPS_PROXY",        "NO_PROXY",
    "http_proxy",     "https_proxy",  "no_proxy",           "TZ"};
/// `_CONTAINERS_`: inside `podman unshare`.
constexpr std::array<std::string_view, 4> kEnginePrefixes{"DOCKER_", "CONTAINER", "PODMAN_",
                                                          "_CONTAINERS_"};

template <std::size_t Count>
bool contains_name(const std::array<std::string_view, Count>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <std::size_t Count>
bool begins(const std::array<std::string_view, Count>& prefixes, std::string_view name) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view one) { return name.starts_with(one); });
}

}  // namespace

bool is_runtime_variable(Starts what, std::string_view name) {
  if (contains_name(kAllNames, name) || begins(kAllPrefixes, name)) return true;
  return what == Starts::engine && (contains_name(kEngine, name) || begins(kEnginePrefixes, name));
}

std::vector<std::string> runtime_variables(Starts what) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (is_runtime_variable(what, text.substr(0, text.find('=')))) variables.emplace_back(text);
  }
  return variables;
}

}  // namespace mlenv
