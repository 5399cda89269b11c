#pragma once
// Logins of ~/.netrc, in the format of ftp(1) and curl. What may be done with one is decided by
// base/login_policy.hpp.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/login_policy.hpp"

namespace mlenv {

struct NetrcLogin {
  LoginOwner owner;
  std::string user;
  std::string password;
};

/// What `machine HOST:PORT` says of that very port, else what `machine HOST` says; for https alone.
/// `default` names no host, and so is for none. What is malformed is passed over.
std::optional<NetrcLogin> find_netrc_login(std::string_view netrc, const http::Url& to);

/// A netrc file with the entries that have a name and a password, less `default` and those of
/// `hosts`: for programs that would send them further than mlenv does.
std::string narrowed_netrc(std::string_view netrc, const std::vector<std::string>& hosts);

/// Whether there is a `default`.
bool has_default(std::string_view netrc);

}  // namespace mlenv
