#include "images/credentials.hpp"

#include <array>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Docker's own variables, not settings of mlenv.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return value == nullptr ? std::string{} : std::string{value};
}

/// `https://host:5000/v2/` → `host:5000`; `host/team/` → `host/team`.
std::string_view plain_key(std::string_view key) {
  if (const std::size_t scheme = key.find("://"); scheme != std::string_view::npos) {
    key.remove_prefix(scheme + 3);
  }
  while (key.ends_with('/')) key.remove_suffix(1);
  for (const std::string_view version : {"/v1", "/v2"}) {
    if (key.ends_with(version)) key.remove_suffix(version.size());
  }
  return key;
}

bool covers(std::string_view key, std::string_view name) {
  return name.starts_with(key) && (name.size() == key.size() || name[key.size()] == '/');
}

std::string text_of(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

Error helper_error(const fs::path& config, std::string_view host, const std::string& helper) {
  return failure("credentials", "the login for `{}` is kept by `docker-credential-{}`", host,
                 helper)
      .because("credential helpers are not supported yet")
      .hint(fmt::format("put an `auths` entry with `auth` for `{}` into another config.json and "
                        "name its folder in DOCKER_CONFIG, instead of `{}`",
                        host, config.string()));
}

/// nullopt: the entry is empty, which is how docker marks a login that a helper keeps.
std::optional<Credentials> read_entry(const nlohmann::json& entry, const fs::path& config,
                                      std::string_view key) {
  Credentials credentials{text_of(entry, "username"), text_of(entry, "password")};
  if (!credentials.user.empty() && !credentials.password.empty()) return credentials;
  if (!text_of(entry, "identitytoken").empty()) {
    throw failure("credentials", "the login for `{}` in `{}` is an identity token", key,
                  config.string())
        .because("identity tokens are not supported yet")
        .hint("log in with a user name and an access token instead");
  }
  const std::string auth = text_of(entry, "auth");
  if (auth.empty()) return std::nullopt;
  const std::string pair = base64_decode(auth).value_or("");
  const std::size_t colon = pair.find(':');
  if (colon == std::string::npos) {
    throw failure("credentials", "the `auth` of `{}` in `{}` is not `user:password` in base64", key,
                  config.string())
        .hint(fmt::format("log in again with `docker login {}`", key));
  }
  // Docker pads some with NUL bytes.
  std::string password = pair.substr(colon + 1);
  password.resize(std::min(password.find('\0'), password.size()));
  return Credentials{pair.substr(0, colon), std::move(password)};
}

}  // namespace

std::string base64_encode(std::string_view text) {
  std::string out;
  unsigned held = 0;
  unsigned bits = 0;
  for (const char c : text) {
    held = (held << 8U) | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6; bits -= 6) out += kAlphabet[(held >> (bits - 6)) & 63U];
  }
  if (bits > 0) out += kAlphabet[(held << (6 - bits)) & 63U];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  unsigned held = 0;
  unsigned bits = 0;
  for (const char c : text) {
    const std::size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    held = (held << 6U) | static_cast<unsigned>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>((held >> bits) & 255U);
  }
  return out;
}

std::string Credentials::basic() const { return base64_encode(user + ":" + password); }

fs::path docker_config_path(const fs::path& given) {
  std::error_code ignored;
  if (!given.empty()) return fs::is_directory(given, ignored) ? given / "config.json" : given;
  if (const std::string folder = environment("DOCKER_CONFIG"); !folder.empty()) {
    return fs::path(folder) / "config.json";
  }
  const std::string home = environment("HOME");
  return home.empty() ? fs::path{} : fs::path(home) / ".docker" / "config.json";
}

std::optional<Credentials> find_credentials(const fs::path& config, std::string_view host,
                                            std::string_view repository) {
  const std::optional<std::string> text = read_file_if_exists(config);
  if (!text) return std::nullopt;
  const nlohmann::json root = parse_json(*text, config.string());
  const std::string name = fmt::format("{}/{}", host, repository);
  std::string_view best;
  const nlohmann::json* entry = nullptr;
  const auto auths = root.find("auths");
  if (auths != root.end() && auths->is_object()) {
    for (const auto& [key, value] : auths->items()) {
      const std::string_view plain = plain_key(key);
      if (!value.is_object() || plain.size() <= best.size() || !covers(plain, name)) continue;
      best = plain;
      entry = &value;
    }
  }
  if (entry != nullptr) {
    if (auto found = read_entry(*entry, config, best)) return found;
  }
  const auto helpers = root.find("credHelpers");
  if (helpers != root.end() && helpers->is_object()) {
    const std::string helper = text_of(*helpers, std::string(host).c_str());
    if (!helper.empty()) throw helper_error(config, host, helper);
  }
  const std::string store = text_of(root, "credsStore");
  if (entry != nullptr && !store.empty()) throw helper_error(config, host, store);
  return std::nullopt;
}

}  // namespace mlenv
