#include "images/registry_auth.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/http_url.hpp"
#include "base/login_policy.hpp"
#include "base/size_limits.hpp"
#include "base/text.hpp"
#include "images/registry_hosts.hpp"

namespace mlenv {
namespace {

/// Walks over a header value.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}
  bool at_end() const { return rest_.empty(); }
  void skip(std::string_view set) {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(set), rest_.size()));
  }
  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view until(std::string_view set) {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(set));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::string value() {
    if (!take('"')) return std::string(until(" ,\t"));
    std::string text;
    while (!at_end() && !take('"')) {
      take('\\');
      if (at_end()) break;
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    return text;
  }

 private:
  std::string_view rest_;
};

/// Either name may carry it (distribution-spec's token authentication); empty when there is none.
std::string token_in(const nlohmann::json& answer) {
  std::string token;
  for (const char* name : {"access_token", "token"}) {
    const auto found = answer.find(name);
    if (found != answer.end() && found->is_string()) found->get_to(token);
  }
  return token;
}

std::string parameter(const Challenge& challenge, const std::string& name) {
  const auto found = challenge.parameters.find(name);
  return found == challenge.parameters.end() ? std::string{} : found->second;
}

std::vector<Challenge> challenges_of(const HttpResponse& refusal) {
  std::vector<Challenge> challenges;
  for (const auto& [name, value] : refusal.headers) {
    if (name != "www-authenticate") continue;
    for (Challenge& one : parse_challenges(value)) challenges.push_back(std::move(one));
  }
  return challenges;
}

}  // namespace

std::vector<Challenge> parse_challenges(std::string_view header) {
  std::vector<Challenge> challenges;
  Scanner scanner{header};
  while (true) {
    scanner.skip(" \t,");
    if (scanner.at_end()) return challenges;
    const std::string_view word = scanner.until(" \t,=");
    if (scanner.take('=')) {  // a parameter of the challenge before it
      std::string value = scanner.value();
      if (!challenges.empty()) challenges.back().parameters[to_lower(word)] = std::move(value);
    } else if (!word.empty()) {
      challenges.push_back({to_lower(word), {}});
    }
  }
}

Authorizer::Authorizer(Http& http, const Reference& where, const fs::path& docker_config,
                       std::vector<fs::path> certificates)
    : http_(http),
      where_(where),
      config_(docker_config_path(docker_config)),
      certificates_(std::move(certificates)),
      keeper_(config_.empty() ? "docker's config.json" : config_.string()) {}

std::string Authorizer::current() const {
  const std::lock_guard lock{mutex_};
  return authorization_;
}

/// Once: a helper may take its time, or ask a person.
void Authorizer::look_up() {
  if (trouble_) throw Error{*trouble_};
  if (looked_) return;
  try {
    credentials_ = find_credentials(config_, where_.host(), where_.repository(), keeper_);
    looked_ = true;
  } catch (const Error& error) {
    trouble_ = error;
    throw;
  }
}

/// It is for who asks the registry a mistake of the registry's, and none of theirs.
std::string Authorizer::realm_of(const Challenge& challenge) const {
  std::string realm = parameter(challenge, "realm");
  try {
    (void)http::parse_url(realm);
  } catch (const Error& error) {
    throw failure("registry", "`{}` names no token server for `{}`", where_.host(),
                  where_.repository())
        .because(error.what())
        .hint("tell who runs the registry: `realm` in its `WWW-Authenticate` has to be an address");
  }
  return realm;
}

void Authorizer::hold_back_login(const HttpResponse& refusal, const std::string& realm) {
  if (!credentials_) return;
  const http::Url registry = http::parse_url(refusal.url);
  held_back_ =
      realm.empty()
          ? login_refusal(login_owner(registry), {registry, registry, true, plain_http_allowed_})
          : token_login_refusal(registry, http::parse_url(realm), plain_http_allowed_);
  if (!held_back_.empty()) credentials_.reset();
}

bool Authorizer::renew(const HttpResponse& refusal, const std::string& used) {
  const std::lock_guard lock{mutex_};
  const std::vector<Challenge> challenges = challenges_of(refusal);
  const auto bearer =
      std::find_if(challenges.begin(), challenges.end(),
                   [](const Challenge& challenge) { return challenge.scheme == "bearer"; });
  const bool is_token = bearer != challenges.end();
  const std::string scope = is_token ? parameter(*bearer, "scope") : std::string{};
  // Another thread was faster. Its token may be good for less than this request needs.
  if (authorization_ != used && scopes_.hold(scope)) return true;
  look_up();
  hold_back_login(refusal, is_token ? realm_of(*bearer) : std::string{});
  if (is_token) {
    TokenScopes scopes = scopes_;
    scopes.add(scope);
    authorization_ = "Bearer " + fetch_token(*bearer, scopes, refusal.url);
    scopes_ = std::move(scopes);
    return true;
  }
  for (const Challenge& challenge : challenges) {
    if (challenge.scheme != "basic" || !credentials_) continue;
    if (!credentials_->identity_token.empty()) {
      throw denied_error(
          fmt::format("`{}` wants a password, and its login is an identity token", where_.host()),
          {});
    }
    std::string basic = "Basic " + credentials_->basic();
    if (basic == used) return false;
    authorization_ = std::move(basic);
    return true;
  }
  return false;
}

/// GET with the password or without any login; an identity token goes in a POST, which is never
/// redirected: its body would follow to wherever that leads.
HttpRequest Authorizer::token_request(const std::string& realm, const std::string& service,
                                      const std::string& scope) const {
  std::string parameters;
  const auto add = [&](std::string_view name, const std::string& value) {
    if (value.empty()) return;
    if (!parameters.empty()) parameters += '&';
    parameters += fmt::format("{}={}", name, url_query_encode(value));
  };
  add("service", service);
  add("scope", scope);
  HttpRequest request;
  request.url = realm;
  request.machine_login = false;
  request.answer_limit = size_limit::kTokenAnswer;
  if (!credentials_ || credentials_->identity_token.empty()) {
    if (!parameters.empty()) {
      request.url += (realm.find('?') == std::string::npos ? "?" : "&") + parameters;
    }
    if (credentials_) request.headers = {{"Authorization", "Basic " + credentials_->basic()}};
    return request;
  }
  add("client_id", "mlenv");
  add("grant_type", "refresh_token");
  add("refresh_token", credentials_->identity_token);
  request.method = "POST";
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body_bytes = parameters.size();
  request.body = [form = std::move(parameters)] {
    return std::make_unique<MemorySource>(as_bytes(form));
  };
  request.follow_redirects = false;
  return request;
}

void Authorizer::trust_token_server(const std::string& realm, std::string_view registry_url) {
  if (!realm.starts_with("https:") || !registry_url.starts_with("https:")) return;
  if (http::same_origin(http::parse_url(realm), http::parse_url(registry_url))) return;
  HostTls tls = tls_of(certificates_, realm);
  if (tls.authorities.empty()) tls.authorities = tls_of(certificates_, registry_url).authorities;
  if (!tls.authorities.empty() || !tls.certificate.empty()) http_.set_tls(realm, tls);
}

std::string Authorizer::fetch_token(const Challenge& challenge, const TokenScopes& scopes,
                                    std::string_view registry_url) {
  const std::string realm = realm_of(challenge);
  trust_token_server(realm, registry_url);
  const HttpRequest request = token_request(realm, parameter(challenge, "service"), scopes.str());
  const HttpResponse response = http_.send(request);
  const long status = response.status;
  const std::string headline =
      fmt::format("`{}` gives no token for `{}`", where_.host(), where_.repository());
  const auto reason = fmt::format("`{}` answered {}", display_url(realm), status);
  const bool refreshing = request.method == "POST";
  // RFC 6749 §5.2: a refresh token that is not good any more is a bad request.
  if (status == 401 || status == 403 || (refreshing && status == 400)) {
    throw denied_error(headline, reason);
  }
  if (refreshing && (status == 404 || status == 405)) {
    throw failure("registry", "{}", headline)
        .because(reason + ": it takes no identity tokens")
        .hint(fmt::format("log in with a user name and an access token: `docker login {}`",
                          where_.host()));
  }
  if (status != 200) throw failure("registry", "{}", headline).because(reason);
  const nlohmann::json answer = parse_secret_json(response.body, display_url(realm));
  std::string token = token_in(answer);
  // It goes into a header: a line's end in it would begin another one.
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; })) {
    throw failure("registry", "{}", headline)
        .because(fmt::format("what `{}` calls one has characters that no token has",
                             display_url(realm)));
  }
  if (!token.empty()) return token;
  throw failure("registry", "the answer of `{}` holds no token", display_url(realm));
}

std::string Authorizer::told() const {
  const std::lock_guard lock{mutex_};
  return login_told();
}

std::string Authorizer::login_told() const {
  const std::string& host = where_.host();
  if (!held_back_.empty()) return "its login was not sent: " + held_back_;
  if (!looked_) return fmt::format("no login was sent: `{}` has not asked for one", host);
  if (!credentials_) return fmt::format("no login was sent: `{}` holds none for it", keeper_);
  if (!credentials_->identity_token.empty()) {
    return fmt::format("the identity token in `{}` was used", keeper_);
  }
  return fmt::format("the login of `{}` in `{}` was used", credentials_->user, keeper_);
}

Error Authorizer::denied(std::string_view headline, std::string_view reason) const {
  const std::lock_guard lock{mutex_};
  return denied_error(headline, reason);
}

Error Authorizer::denied_error(std::string_view headline, std::string_view reason) const {
  Error error = failure("denied", "{}", headline);
  if (!reason.empty()) error.because(std::string(reason));
  const std::string& host = where_.host();
  if (!held_back_.empty()) {
    error.because(login_told());
    error.hint(
        "use the registry with TLS; plain HTTP on this machine's own loopback has logins where "
        "`--plain-http` or a file about registries says so");
  } else if (!looked_) {
    error.because(login_told());
    error.hint(fmt::format(
        "check the repository's name; a login is sent to who asks for it: `{}` would have to "
        "answer 401 with `WWW-Authenticate` to those who have not logged in",
        host));
  } else if (!credentials_) {
    error.hint(
        fmt::format("log in with `docker login {}`; `{}` holds no login for it", host, keeper_));
  } else if (!credentials_->identity_token.empty()) {
    error.hint(
        fmt::format("renew the identity token in `{}` with `docker login {}`", keeper_, host));
  } else {
    error.hint(
        fmt::format("check that `{}` may do this; its login is in `{}` (`docker login {}` "
                    "renews it)",
                    credentials_->user, keeper_, host));
  }
  return error;
}

}  // namespace mlenv
