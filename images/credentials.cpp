#include "images/credentials.hpp"

#include <algorithm>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_depth.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "images/credential_helper.hpp"

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

/// nullopt: the entry is empty, which is how docker marks a login that a helper keeps.
std::optional<Credentials> read_login(const nlohmann::json& entry, const fs::path& config,
                                      std::string_view key) {
  // Beside it `auth` holds a user name without a password.
  if (std::string token = text_of(entry, "identitytoken"); !token.empty()) {
    return Credentials{{}, {}, std::move(token)};
  }
  Credentials credentials{text_of(entry, "username"), text_of(entry, "password"), {}};
  if (!credentials.user.empty() && !credentials.password.empty()) return credentials;
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
  return Credentials{pair.substr(0, colon), std::move(password), {}};
}

/// NAME of the `docker-credential-NAME` that keeps the login for `host`; empty: the file itself.
std::string helper_in(const nlohmann::json& root, std::string_view host) {
  const auto helpers = root.find("credHelpers");
  if (helpers != root.end() && helpers->is_object()) {
    const auto own = helpers->find(std::string(host));
    if (own != helpers->end() && own->is_string()) return own->get<std::string>();
  }
  return text_of(root, "credsStore");
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

nlohmann::json parse_secret_json(std::string_view text, std::string_view what) {
  if (is_too_deep(text)) {
    throw failure("bad-json", "`{}` is not JSON that mlenv reads", what)
        .because(fmt::format("lists and maps lie in each other more than {} deep", kDeepestJson));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const std::string_view before = text.substr(0, std::min(error.byte, text.size()));
    throw failure("bad-json", "`{}` is not well-formed JSON", what)
        .because(fmt::format("the mistake is in line {}",
                             std::count(before.begin(), before.end(), '\n') + 1));
  }
}

std::optional<Credentials> find_credentials(const fs::path& config, std::string_view host,
                                            std::string_view repository, std::string& keeper) {
  const auto text = read_small_file_if_exists(config, size_limit::kDockerConfig);
  if (!text) return std::nullopt;
  const nlohmann::json root = parse_secret_json(*text, config.string());
  if (const std::string helper = helper_in(root, host); !helper.empty()) {
    keeper = "docker-credential-" + helper;
    return ask_credential_helper(helper, host);
  }
  const std::string name = fmt::format("{}/{}", host, repository);
  std::string_view best;
  const nlohmann::json* entry = nullptr;
  const auto auths = root.find("auths");
  if (auths == root.end() || !auths->is_object()) return std::nullopt;
  for (const auto& [key, value] : auths->items()) {
    const std::string_view plain = plain_key(key);
    if (!value.is_object() || plain.size() <= best.size() || !covers(plain, name)) continue;
    best = plain;
    entry = &value;
  }
  return entry == nullptr ? std::nullopt : read_login(*entry, config, best);
}

}  // namespace mlenv
