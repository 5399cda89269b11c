#pragma once
// Logins for registries, as `docker login` leaves them in config.json (docs/registry.md).
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/files.hpp"

namespace mlenv {

struct Credentials {
  std::string user;
  std::string password;
  /// When it is not empty the login is this alone: a refresh token (RFC 6749), good for tokens from
  /// the registry's token server and for nothing else.
  std::string identity_token{};
  /// `user:password` in base64, as Basic authentication wants it (RFC 7617).
  std::string basic() const;
  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// `given` when it is not empty (a folder means config.json in it), else
/// $DOCKER_CONFIG/config.json, else ~/.docker/config.json.
fs::path docker_config_path(const fs::path& given);

/// The login for `host/repository`. A helper `docker-credential-NAME` that is named for it is asked
/// and has the last word: as Docker has it, what `credHelpers` says of the host (exactly; an empty
/// name is the file), else `credsStore`. `keeper` becomes its name before that, and is left alone
/// when the file itself keeps the login. Then `auths` in the file `config` has it. Keys there may
/// be a host, a URL
/// (`https://host/v1/`) or a host with the beginning of a path; the longest that fits wins. nullopt
/// when there is none or no file. Throws `bad-json` or `credentials` when the file is malformed,
/// and what `ask_credential_helper` throws.
std::optional<Credentials> find_credentials(const fs::path& config, std::string_view host,
                                            std::string_view repository, std::string& keeper);

/// `parse_json` for what holds secrets: the message says where it is malformed and quotes nothing.
nlohmann::json parse_secret_json(std::string_view text, std::string_view what);

/// RFC 4648 §4. Decoding gives nullopt for what is not base64; missing padding is fine.
std::string base64_encode(std::string_view text);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace mlenv
