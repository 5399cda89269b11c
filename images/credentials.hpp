#pragma once
// Logins for registries, as `docker login` leaves them in config.json (docs/registry.md).
#include <optional>
#include <string>
#include <string_view>

#include "base/files.hpp"

namespace mlenv {

struct Credentials {
  std::string user;
  std::string password;
  /// `user:password` in base64, as Basic authentication wants it (RFC 7617).
  std::string basic() const;
  friend bool operator==(const Credentials&, const Credentials&) = default;
};

/// `given` when it is not empty (a folder means config.json in it), else
/// $DOCKER_CONFIG/config.json, else ~/.docker/config.json.
fs::path docker_config_path(const fs::path& given);

/// The login for `host/repository` in the file `config`. Keys of `auths` may be a host, a URL
/// (`https://host/v1/`) or a host with the beginning of a path; the longest that fits wins. nullopt
/// when there is none or no file. Throws `bad-json` or `credentials` when the file is malformed, or
/// says that a credential helper knows (not supported yet).
std::optional<Credentials> find_credentials(const fs::path& config, std::string_view host,
                                            std::string_view repository);

/// RFC 4648 §4. Decoding gives nullopt for what is not base64; missing padding is fine.
std::string base64_encode(std::string_view text);
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace mlenv
