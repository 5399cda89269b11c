#pragma once
// What the parts of Registry share: where it is, how to ask it, what its refusals mean.
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "images/registry.hpp"
#include "images/registry_auth.hpp"

namespace mlenv {

/// Of the login for one request: another thread's token may be for less, or run out meanwhile.
inline constexpr int kMostRenewals = 2;

struct Registry::State {
  State(Http& http_client, const Reference& reference, RegistryOptions given);

  /// `https://host` or `http://host`; asks a loopback host, and an insecure one, which of them at
  /// the first call.
  std::string base();
  /// `…/v2/REPOSITORY/` + `path`.
  std::string url(std::string_view path) {
    return base() + "/v2/" + where.repository() + "/" + std::string(path);
  }
  /// For messages.
  std::string manifest_place(const std::string& name) const;
  /// `Accept` for every kind of manifest and index.
  static HttpHeaders manifest_types();
  /// Sends with the login that the registry asks for, asking it once what that is. The login goes
  /// to the registry's own host only.
  HttpResponse call(HttpRequest request);
  /// Puts the current login into `headers` when `url` is the registry's; returns it.
  std::string authorize(HttpHeaders& headers, const std::string& url);
  /// `Authorizer::renew`, for the registry's own refusals only: another host, to which it had
  /// redirected, might name a token server of its own.
  bool renew(const HttpResponse& refusal, const std::string& used);
  /// A Location header of an answer to `request_url`, absolute. Keeps TLS when a proxy before the
  /// registry has hidden it from it; throws `network` for other places without it.
  std::string resolve(const std::string& request_url, std::string_view location);
  /// `denied`, `not-found` or `registry`, in the registry's own words. `what` reads `upload a
  /// layer`.
  Error refused(const HttpResponse& response, std::string_view what) const;

  Http& http;
  Reference where;
  RegistryOptions options;
  Authorizer authorizer;

 private:
  HttpResponse send_first(const HttpRequest& request);
  /// What this machine's files say about TLS with `secure`.
  void set_up_tls(const std::string& secure);

  std::mutex mutex_;
  std::string base_;
};

/// `CODE: message (detail)` of a distribution-spec error answer, or an empty text.
std::string registry_words(const HttpResponse& response);
/// Code of its first error: `DIGEST_INVALID`, …
std::string registry_code(const HttpResponse& response);

}  // namespace mlenv
