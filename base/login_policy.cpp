#include "base/login_policy.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace mlenv {
namespace {

std::string shown(const http::Url& url) {
  return fmt::format("{}://{}:{}", url.scheme, url.host, url.port);
}

bool is_owner(const LoginOwner& owner, const http::Url& to) {
  return owner.scheme == to.scheme && (to_lower(owner.host) == to_lower(to.host)) &&
         (owner.port.empty() || owner.port == to.port);
}

}  // namespace

LoginOwner login_owner(const http::Url& url) { return {url.scheme, url.host, url.port}; }

bool is_login_safe(const http::Url& to, bool plain_http_allowed) {
  return to.scheme == "https" || (plain_http_allowed && http::is_loopback(to.host));
}

std::string login_refusal(const LoginOwner& owner, const LoginRequest& request) {
  if (!request.challenged) return "the server has not asked for a login";
  if (!http::same_origin(request.asked, request.to)) {
    return fmt::format("`{}` redirects to `{}`, and a login does not follow", shown(request.asked),
                       shown(request.to));
  }
  if (!is_owner(owner, request.to)) {
    return fmt::format("the login is for `{}`, not for `{}`", owner.host, shown(request.to));
  }
  if (is_login_safe(request.to, request.plain_http_allowed)) return {};
  return fmt::format("a login for `{}` would go over plain HTTP, for everybody on the way to read",
                     shown(request.to));
}

std::string token_login_refusal(const http::Url& registry, const http::Url& realm,
                                bool plain_http_allowed) {
  const bool own = http::same_origin(registry, realm);
  if (!own && (registry.scheme != "https" || realm.scheme != "https")) {
    return fmt::format("`{}` wants the login sent to `{}`, which is not encrypted", shown(registry),
                       shown(realm));
  }
  return is_login_safe(realm, plain_http_allowed)
             ? std::string{}
             : fmt::format("`{}` wants a login over plain HTTP", shown(realm));
}

}  // namespace mlenv
