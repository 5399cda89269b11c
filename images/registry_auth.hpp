#pragma once
// Answers a registry's challenges: Basic (RFC 7617) and Bearer tokens (distribution's token and
// OAuth2 documents). Nothing is sent before a registry asks.
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/http.hpp"
#include "images/credentials.hpp"
#include "images/reference.hpp"
#include "images/token_scopes.hpp"

namespace mlenv {

struct Challenge {
  std::string scheme;                             ///< lower case
  std::map<std::string, std::string> parameters;  ///< names in lower case
};

/// All challenges of a WWW-Authenticate value (RFC 9110 §11.6.1); what is malformed is skipped.
std::vector<Challenge> parse_challenges(std::string_view header);

class Authorizer {
 public:
  /// `certificates` as RegistryHosts has them: a token server's own, else the registry's
  /// authorities hold for it too.
  Authorizer(Http& http, const Reference& where, const fs::path& docker_config,
             std::vector<fs::path> certificates = {});

  /// Before the first use: tokens are for pulling and nothing else, whatever is asked for.
  void only_pull() { scopes_.only_pull(); }
  /// Before the first use: that plain HTTP was asked for. Else, and anywhere but on loopback, no
  /// login goes over it, nor a token that was got with one (base/login_policy.hpp).
  void allow_plain_http() { plain_http_allowed_ = true; }
  /// What to send as Authorization; empty: nothing. From any thread.
  std::string current() const;
  /// After a 401 to a request that carried `used`: true when there is something better to send. A
  /// new token is good for all that earlier ones were asked for too, for other threads have it too.
  /// Throws what `find_credentials` throws, the same for every thread that asks, and `denied` or
  /// `registry` when no token is to be had.
  bool renew(const HttpResponse& refusal, const std::string& used);
  /// Which login the last request went with, or why with none; a sentence for messages.
  std::string told() const;
  /// `denied`, with what to do.
  Error denied(std::string_view headline, std::string_view reason) const;

 private:
  // These want the lock held.
  Error denied_error(std::string_view headline, std::string_view reason) const;
  std::string login_told() const;
  void look_up();
  /// The token server of a challenge. Throws `registry` where that is no address.
  std::string realm_of(const Challenge& challenge) const;
  /// Gives the login up, with the reason for messages, when the policy does not let it go to
  /// `realm` (a token server) or, where that is empty, to the registry itself.
  void hold_back_login(const HttpResponse& refusal, const std::string& realm);
  void trust_token_server(const std::string& realm, std::string_view registry_url);
  std::string fetch_token(const Challenge& challenge, const TokenScopes& scopes,
                          std::string_view registry_url);
  HttpRequest token_request(const std::string& realm, const std::string& service,
                            const std::string& scope) const;

  Http& http_;
  Reference where_;
  fs::path config_;
  std::vector<fs::path> certificates_;
  mutable std::mutex mutex_;
  bool looked_ = false;
  std::optional<Error> trouble_;  ///< why the login cannot be had
  std::string keeper_;            ///< who has it, or would: a file or a program
  std::optional<Credentials> credentials_;
  std::string held_back_;  ///< why there is a login that was not sent; empty: it may be
  bool plain_http_allowed_ = false;
  std::string authorization_;
  TokenScopes scopes_;  ///< what it was asked for, where it is a token
};

}  // namespace mlenv
