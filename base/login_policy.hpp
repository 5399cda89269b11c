#pragma once
// The one place that decides whether a login goes into a request: of registries (images/registry*),
// of package indexes and archives (base/http*), and of what mlenv starts for them (git, uv:
// recipes/resolve/logins.hpp). A login is for the host, port and scheme that it was given for:
//
//   - nothing is sent before the server has asked (401 with WWW-Authenticate), also where it hides
//     from strangers what there is (403, 404): the error says then that a login was held back;
//   - never to another origin (scheme, host, port), be it by a redirect, by a Location, or by the
//     token server that a challenge names, unless that challenge came over TLS and it has TLS;
//   - never over plain HTTP, except to this machine's own loopback where that was asked for;
//   - a proxy never sees one: it is told host and port in a CONNECT, and its own login alone.
#include <string>
#include <string_view>

#include "base/http_url.hpp"

namespace mlenv {

/// Whom a login was given for.
struct LoginOwner {
  std::string scheme = "https";
  std::string host{};
  std::string port{};  ///< empty: it was given for the host alone, as netrc's `machine HOST`
};

/// The origin of `url`.
LoginOwner login_owner(const http::Url& url);

/// What is known of the request that it would go into.
struct LoginRequest {
  http::Url to{};
  http::Url asked{};                ///< where the request began, before any redirect
  bool challenged = false;          ///< `to` has answered 401 with WWW-Authenticate
  bool plain_http_allowed = false;  ///< plain HTTP to loopback was asked for
};

/// Empty: it may be sent. Else why not, as the reason of an error.
std::string login_refusal(const LoginOwner& owner, const LoginRequest& request);

inline bool may_send(const LoginOwner& owner, const LoginRequest& request) {
  return login_refusal(owner, request).empty();
}

/// The same for the login at the token server `realm` that the registry at `registry` names in its
/// challenge. Another origin is asked only with TLS on both sides: the registry vouches for it, as
/// with Docker.
std::string token_login_refusal(const http::Url& registry, const http::Url& realm,
                                bool plain_http_allowed);

/// What to do where a server hides things from strangers, and so never asks.
inline constexpr std::string_view kHowToBeAsked =
    "a login is sent to who asks for it: let the server answer 401 with `WWW-Authenticate: Basic` "
    "to "
    "those who have not logged in";

/// Whether this may be sent in the clear at all: only to loopback, and only where it was asked for.
bool is_login_safe(const http::Url& to, bool plain_http_allowed);

}  // namespace mlenv
