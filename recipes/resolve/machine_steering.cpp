#include "recipes/resolve/machine_steering.hpp"

#include <unistd.h>
#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/resolve/host_logins.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// A setting of another tool, and the recipe's key.
struct ToolWord {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::string_view kBuildConstraints = "build: {constraints: …}";
constexpr std::string_view kBuildRequires = "build: {requires: …}";
constexpr std::string_view kBuildSettings = "build: {config-settings: …}";
/// Where a recipe has no word for it, the second is empty.
constexpr auto kUvWords = std::to_array<ToolWord>({
    {"UV_OVERRIDE", "overrides"},
    {"UV_CONSTRAINT", "constraints"},
    {"UV_EXCLUDE", "exclude"},
    {"UV_BUILD_CONSTRAINT", kBuildConstraints},
    {"UV_NO_BINARY", "no-binary"},
    {"UV_NO_BINARY_PACKAGE", "no-binary"},
    {"UV_NO_BUILD", "only-binary"},
    {"UV_NO_BUILD_PACKAGE", "only-binary"},
    {"UV_ONLY_BINARY", "only-binary"},
    {"UV_PRERELEASE", "prerelease"},
    {"UV_RESOLUTION", "constraints"},
    {"UV_EXCLUDE_NEWER", "exclude-newer"},
    {"UV_EXCLUDE_NEWER_PACKAGE", "constraints"},
    {"UV_TORCH_BACKEND", "cuda"},
    {"UV_REQUIRE_HASHES", "requirements"},
    {"UV_CONFIG_SETTINGS", kBuildSettings},
    {"UV_NO_BUILD_ISOLATION", kBuildRequires},
    {"UV_FORK_STRATEGY", ""},
    {"UV_NO_SOURCES", ""},
    {"UV_NO_SOURCES_PACKAGE", ""},
    {"UV_PYTHON_PLATFORM", "platforms"},
    {"UV_UPGRADE", ""},
});
/// What of uv's variables is the machine's: where packages come from, and how they are fetched. No
/// other reaches uv, known here or not.
constexpr auto kMachineVariables = std::to_array<std::string_view>({
    "UV_ALLOW_INSECURE_HOST",
    "UV_CACHE_DIR",
    "UV_CONFIG_FILE",
    "UV_CREDENTIALS_DIR",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_GITHUB_TOKEN",
    "UV_GIT_LFS",
    "UV_HTTP_CONNECT_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_INDEX_URL",
    "UV_INSECURE_HOST",
    "UV_KEYRING_PROVIDER",
    "UV_LOCK_TIMEOUT",
    "UV_NATIVE_TLS",
    "UV_NO_CACHE",
    "UV_NO_CONFIG",
    "UV_NO_INDEX",
    "UV_OFFLINE",
    "UV_REQUEST_TIMEOUT",
    "UV_STACK_SIZE",
    "UV_SYSTEM_CERTS",
});
/// `UV_INDEX_NAME_PASSWORD`, `UV_CONCURRENT_DOWNLOADS`.
constexpr std::array<std::string_view, 2> kMachinePrefixes = {"UV_INDEX_", "UV_CONCURRENT_"};
/// As in pip.conf; a variable is `PIP_`, the name in capitals.
constexpr std::array<ToolWord, 8> kPipWords = {{{"constraint", "constraints"},
                                                {"build-constraint", kBuildConstraints},
                                                {"no-binary", "no-binary"},
                                                {"only-binary", "only-binary"},
                                                {"prefer-binary", "prefer-binary"},
                                                {"pre", "prerelease: allow"},
                                                {"config-settings", kBuildSettings},
                                                {"require-hashes", "requirements"}}};
/// Of uv.toml, also in its table `pip`.
constexpr auto kUvSettings = std::to_array<ToolWord>({
    {"override-dependencies", "overrides"},
    {"constraint-dependencies", "constraints"},
    {"exclude-dependencies", "exclude"},
    {"build-constraint-dependencies", kBuildConstraints},
    {"extra-build-dependencies", kBuildRequires},
    {"extra-build-variables", "build: {env: …}"},
    {"config-settings", kBuildSettings},
    {"config-settings-package", kBuildSettings},
    {"no-binary", "no-binary"},
    {"no-binary-package", "no-binary"},
    {"no-build", "only-binary"},
    {"no-build-package", "only-binary"},
    {"only-binary", "only-binary"},
    {"prerelease", "prerelease"},
    {"dependency-metadata", "dependency-metadata"},
    {"resolution", "constraints"},
    {"exclude-newer", "exclude-newer"},
    {"exclude-newer-package", "constraints"},
    {"torch-backend", "cuda"},
    {"require-hashes", "requirements"},
    {"no-build-isolation", kBuildRequires},
    {"no-build-isolation-package", kBuildRequires},
    {"no-emit-package", "exclude"},
    {"python-platform", "platforms"},
    {"python-version", "python"},
    {"universal", ""},
    {"fork-strategy", ""},
    {"environments", "platforms"},
    {"required-environments", "platforms"},
    {"no-sources", ""},
    {"no-sources-package", ""},
    {"no-deps", ""},
    {"extra", "requirements"},
    {"all-extras", "requirements"},
    {"group", "requirements"},
    {"upgrade", ""},
    {"upgrade-package", ""},
});
/// What of uv's settings is the machine's, as of its variables.
constexpr auto kMachineSettings = std::to_array<std::string_view>({
    "allow-insecure-host",
    "cache-dir",
    "concurrent-builds",
    "concurrent-downloads",
    "concurrent-installs",
    "extra-index-url",
    "find-links",
    "http-proxy",
    "https-proxy",
    "index",
    "index-strategy",
    "index-url",
    "keyring-provider",
    "native-tls",
    "no-cache",
    "no-index",
    "no-proxy",
    "offline",
    "system-certs",
});

std::string pip_variable(std::string_view name) {
  std::string text = "PIP_";
  for (const char c : name) text += c == '-' ? '_' : static_cast<char>(is_lower(c) ? c - 32 : c);
  return text;
}

/// Set to what means no: an empty text, `0`, `false`.
bool is_off(std::string_view value) {
  return value.empty() || value == "0" || value == "false" || value == "False" || value == "no";
}

std::string read_setting_file(const fs::path& path) {
  try {
    return read_small_file_if_exists(path, size_limit::kMachineConfig).value_or("");
  } catch (const Error&) {
    return {};  // not ours to read
  }
}

fs::path config_home(const std::vector<std::string>& environment) {
  const std::string_view own = variable_in(environment, "XDG_CONFIG_HOME");
  if (!own.empty()) return own;
  const std::string_view home = variable_in(environment, "HOME");
  return home.empty() ? fs::path{} : fs::path(home) / ".config";
}

/// `[global]` and `[install]` of a pip.conf.
void words_of_pip(const fs::path& path, std::vector<MachineWord>& found) {
  const std::string text = read_setting_file(path);
  bool counts = false;
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view clean = trim(line);
    if (clean.starts_with('[')) counts = clean == "[global]" || clean == "[install]";
    const std::size_t end = clean.find_first_of("=:");
    if (!counts || end == std::string_view::npos || clean.starts_with('#')) continue;
    std::string name(trim(clean.substr(0, end)));
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string_view value = trim(clean.substr(end + 1));
    for (const ToolWord& word : kPipWords) {
      if (word.theirs != name || (is_off(value) && !value.empty())) continue;
      found.push_back({fmt::format("`{}` of {}", name, path.string()), std::string(word.ours),
                       std::string(value)});
    }
  }
}

std::vector<fs::path> pip_files(const std::vector<std::string>& environment, const fs::path& root) {
  const std::string_view own = variable_in(environment, "PIP_CONFIG_FILE");
  if (own == "/dev/null") return {};
  std::vector<fs::path> files = {root / "etc/pip.conf", root / "etc/xdg/pip/pip.conf"};
  const std::string_view home = variable_in(environment, "HOME");
  if (!home.empty()) files.push_back(fs::path(home) / ".pip/pip.conf");
  const fs::path config = config_home(environment);
  if (!config.empty()) files.push_back(config / "pip/pip.conf");
  if (!own.empty()) files.emplace_back(own);
  return files;
}

const ToolWord* setting_of_uv(std::string_view key) {
  const auto found = std::find_if(kUvSettings.begin(), kUvSettings.end(),
                                  [&](const ToolWord& word) { return word.theirs == key; });
  return found == kUvSettings.end() ? nullptr : &*found;
}

std::optional<TomlValue> settings_in(const std::string& text) {
  try {
    return parse_toml(
        {.shown_path = "uv.toml", .text = text, .code = "config-invalid", .hint = {}});
  } catch (const Error&) {
    return std::nullopt;  // uv will say it
  }
}

void words_of_uv(const fs::path& path, std::vector<MachineWord>& found) {
  if (path.empty()) return;
  const auto root = settings_in(read_setting_file(path));
  if (!root) return;
  const auto take = [&](const TomlValue& table) {
    for (const auto& [key, value] : table.members) {
      const ToolWord* word = setting_of_uv(key);
      if (word == nullptr) continue;
      if (value.kind == TomlKind::boolean && !value.boolean) continue;
      found.push_back({fmt::format("`{}` of {}", key, path.string()), std::string(word->ours), {}});
    }
  };
  take(*root);
  if (const TomlValue* pip = root->find("pip")) take(*pip);
}

/// nullopt: of a kind that has no place in uv's settings.
std::optional<std::string> rendered_toml(const TomlValue& value) {
  std::vector<std::string> parts;
  switch (value.kind) {
    case TomlKind::text:
      return toml_text(value.text);
    case TomlKind::integer:
      return std::to_string(value.integer);
    case TomlKind::boolean:
      return value.boolean ? "true" : "false";
    case TomlKind::list:
      for (const TomlValue& one : value.items) {
        if (auto text = rendered_toml(one)) parts.push_back(*std::move(text));
      }
      return '[' + join(parts, ", ") + ']';
    case TomlKind::table:
      for (const auto& [key, one] : value.members) {
        if (auto text = rendered_toml(one)) parts.push_back(toml_key(key) + " = " + *text);
      }
      return parts.empty() ? "{}" : "{ " + join(parts, ", ") + " }";
    case TomlKind::other:
      break;
  }
  return std::nullopt;
}

/// The machine's settings stay, and with them the table `pip`.
bool take_steering_out(TomlValue& table) {
  return std::erase_if(table.members, [](const auto& member) {
           return member.first != "pip" && !is_among(kMachineSettings, member.first);
         }) > 0;
}

}  // namespace

bool may_reach_uv(std::string_view variable) {
  constexpr std::string_view kOwn = "UV_";
  if (!variable.starts_with(kOwn) || is_among(kMachineVariables, variable)) return true;
  return std::any_of(kMachinePrefixes.begin(), kMachinePrefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

UvConfigFiles uv_config_files(const std::vector<std::string>& environment, const fs::path& root) {
  UvConfigFiles files;
  if (!is_off(variable_in(environment, "UV_NO_CONFIG"))) return files;
  const std::string_view own = variable_in(environment, "UV_CONFIG_FILE");
  if (!own.empty()) {
    files.user = own;
    return files;
  }
  std::error_code unknown;
  const fs::path config = config_home(environment);
  if (!config.empty() && fs::exists(config / "uv/uv.toml", unknown)) {
    files.user = config / "uv/uv.toml";
  }
  std::vector<fs::path> places;
  const std::string_view folders = variable_in(environment, "XDG_CONFIG_DIRS");
  for (const std::string_view one : split(folders.empty() ? "/etc/xdg" : folders, ':')) {
    const std::size_t start = one.find_first_not_of('/');
    if (start != std::string_view::npos) places.push_back(root / one.substr(start) / "uv/uv.toml");
  }
  places.push_back(root / "etc/uv/uv.toml");
  for (const fs::path& place : places) {
    if (files.machine.empty() && fs::exists(place, unknown)) files.machine = place;
  }
  return files;
}

std::optional<std::string> without_steering(const std::string& text) {
  auto root = settings_in(text);
  if (!root) return std::nullopt;
  bool changed = take_steering_out(*root);
  const auto pip = root->members.find("pip");
  if (pip != root->members.end()) changed = take_steering_out(pip->second) || changed;
  if (!changed) return std::nullopt;
  std::string out;
  for (const auto& [key, value] : root->members) {
    if (const auto one = rendered_toml(value)) out += fmt::format("{} = {}\n", toml_key(key), *one);
  }
  return out;
}

void narrow_uv_config(std::vector<std::string>& environment, const fs::path& folder,
                      const fs::path& root) {
  const UvConfigFiles files = uv_config_files(environment, root);
  // Each of these would also put aside the settings that come with the question.
  const bool own = !variable_in(environment, "UV_CONFIG_FILE").empty() ||
                   !variable_in(environment, "UV_NO_CONFIG").empty();
  for (const bool users : {true, false}) {
    const fs::path& from = users ? files.user : files.machine;
    const std::string text = from.empty() ? std::string{} : read_setting_file(from);
    const auto narrowed = without_steering(text);
    if (!own && !narrowed) continue;
    const fs::path home = folder / (users ? "user-settings" : "machine-settings");
    make_folders(home / "uv");
    write_file(home / "uv" / "uv.toml", narrowed.value_or(text), false);
    set_variable(environment, users ? "XDG_CONFIG_HOME" : "XDG_CONFIG_DIRS", home.string());
  }
  set_variable(environment, "UV_CONFIG_FILE", {});
  set_variable(environment, "UV_NO_CONFIG", {});
}

std::vector<MachineWord> machine_steering(const std::vector<std::string>& environment,
                                          const fs::path& root) {
  std::vector<MachineWord> found;
  const auto take = [&](const std::string& name, std::string_view key) {
    const std::string_view value = variable_in(environment, name);
    if (!is_off(value)) found.push_back({'`' + name + '`', std::string(key), std::string(value)});
  };
  for (const ToolWord& word : kUvWords) take(std::string(word.theirs), word.ours);
  for (const ToolWord& word : kPipWords) take(pip_variable(word.theirs), word.ours);
  for (const fs::path& path : pip_files(environment, root)) words_of_pip(path, found);
  const UvConfigFiles files = uv_config_files(environment, root);
  words_of_uv(files.user, found);
  words_of_uv(files.machine, found);
  return found;
}

}  // namespace mlenv
