#include "images/registry.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/http_url.hpp"
#include "base/json.hpp"
#include "base/log.hpp"
#include "base/size_limits.hpp"
#include "images/image_json.hpp"
#include "images/platform.hpp"
#include "images/registry_state.hpp"

namespace mlenv {
namespace {

constexpr std::chrono::milliseconds kLoopbackAnswer{5'000};
constexpr std::size_t kLongestDetail = 300;
constexpr int kMostIndexes = 4;  ///< one in the other; who nests them at all does so once

/// First error object of `{"errors":[{"code","message","detail"}]}`, or null.
nlohmann::json first_error(const HttpResponse& response) {
  const nlohmann::json root = try_image_json(response.body);
  if (!root.is_object()) return nullptr;
  const auto errors = root.find("errors");
  if (errors == root.end() || !errors->is_array() || errors->empty()) return nullptr;
  return errors->front().is_object() ? errors->front() : nlohmann::json(nullptr);
}

}  // namespace

std::string registry_words(const HttpResponse& response) {
  const nlohmann::json error = first_error(response);
  if (!error.is_object()) return {};
  std::string words = text_of(error, "code");
  if (const std::string message = text_of(error, "message"); !message.empty()) {
    words += (words.empty() ? "" : ": ") + message;
  }
  const auto detail = error.find("detail");
  if (detail != error.end() && !detail->is_null() && !detail->empty()) {
    std::string text = detail->is_string() ? detail->get<std::string>() : canonical(*detail);
    if (text.size() > kLongestDetail) text = text.substr(0, kLongestDetail) + "…";
    words += " (" + text + ")";
  }
  return words;
}

std::string registry_code(const HttpResponse& response) {
  return text_of(first_error(response), "code");
}

Registry::State::State(Http& http_client, const Reference& reference, RegistryOptions given)
    : http(http_client),
      where(reference),
      options(std::move(given)),
      authorizer(http_client, reference, options.docker_config, options.hosts.certificates) {
  if (options.only_pull) authorizer.only_pull();
  if (options.plain_http || options.insecure) authorizer.allow_plain_http();
  if (where.host().empty()) {
    throw usage_error("bad-reference", "`{}` names no registry", where.str())
        .hint(fmt::format("put its host in front: `HOST/{}`", where.str()));
  }
}

std::string Registry::State::base() {
  const std::lock_guard lock{mutex_};
  if (!base_.empty()) return base_;
  const std::string secure = "https://" + where.host();
  const std::string plain = "http://" + where.host();
  const http::Url parsed = http::parse_url(secure);
  if (options.plain_http) return base_ = plain;
  set_up_tls(secure);
  if (!options.insecure && !http::is_loopback(parsed.host)) return base_ = secure;
  HttpRequest probe;
  probe.url = secure + "/v2/";
  probe.retry = false;
  probe.machine_login = false;
  probe.answer_limit = size_limit::kManifest;
  probe.connect_timeout = kLoopbackAnswer;
  probe.stall_timeout = kLoopbackAnswer;
  try {
    http.send(probe);
    return base_ = secure;
  } catch (const Error& error) {
    if (error.code() != "network") throw;  // TLS is spoken there, but not trusted
    log::debug("plain HTTP for {}: {}", where.host(), error.what());
    return base_ = plain;
  }
}

void Registry::State::set_up_tls(const std::string& secure) {
  HostTls tls = tls_of(options.hosts.certificates, secure);
  tls.verify = !options.insecure && !options.skip_verify;
  http.set_tls(secure, tls);  // also the usual: another name on this host may have asked for less
}

std::string Registry::State::authorize(HttpHeaders& headers, const std::string& url) {
  std::erase_if(headers, [](const auto& header) { return header.first == "Authorization"; });
  if (!http::same_origin(http::parse_url(url), http::parse_url(base()))) return {};
  std::string login = authorizer.current();
  if (!login.empty()) headers.emplace_back("Authorization", login);
  return login;
}

bool Registry::State::renew(const HttpResponse& refusal, const std::string& used) {
  if (!http::same_origin(http::parse_url(refusal.url), http::parse_url(base()))) return false;
  return authorizer.renew(refusal, used);
}

/// OpenSSL's words for a server that does not speak TLS; libcurl has no code for them.
HttpResponse Registry::State::send_first(const HttpRequest& request) {
  try {
    return http.send(request);
  } catch (Error& error) {
    const bool plain =
        std::string_view(error.what()).find("wrong version number") != std::string_view::npos;
    if (!plain || !request.url.starts_with("https:")) throw;
    error.hint(fmt::format(
        "`{}` seems to speak plain HTTP: where the network may be trusted, say `--plain-http`",
        where.host()));
    throw;
  }
}

HttpResponse Registry::State::call(HttpRequest request) {
  request.machine_login = false;
  request.answer_limit = std::min(request.answer_limit, size_limit::kManifest);
  std::string used = authorize(request.headers, request.url);
  HttpResponse response = send_first(request);
  for (int i = 0; i < kMostRenewals && response.status == 401 && renew(response, used); ++i) {
    used = authorize(request.headers, request.url);
    response = http.send(request);
  }
  return response;
}

std::string Registry::State::resolve(const std::string& request_url, std::string_view location) {
  const std::string hidden = "http://" + where.host() + "/";
  if (base().starts_with("https:") && location.starts_with(hidden)) {
    return base() + "/" + std::string(location.substr(hidden.size()));
  }
  const http::Url found = http::resolve_url(http::parse_url(request_url), location);
  if (base().starts_with("https:") && found.scheme == "http") {
    throw failure("network", "`{}` wants layers sent to `{}`, which is not encrypted", where.host(),
                  display_url(found.text));
  }
  return found.text;
}

Error Registry::State::refused(const HttpResponse& response, std::string_view what) const {
  const std::string place = where.host() + "/" + where.repository();
  std::string words = registry_words(response);
  if (words.empty()) words = fmt::format("the registry answered {}", response.status);
  if (response.status == 401 || response.status == 403) {
    return authorizer.denied(fmt::format("`{}` does not let you {}", place, what), words);
  }
  const std::string code = response.status == 404 ? "not-found" : "registry";
  Error error = failure(code, "`{}` did not {}", place, what);
  error.because(words);
  if (response.status == 404) error.because(authorizer.told());
  if (response.status == 429) error.hint("wait a while, then run the same command again");
  if (response.status == 413) error.hint("raise the body limit of the proxy before the registry");
  return error;
}

HttpHeaders Registry::State::manifest_types() {
  HttpHeaders accept;
  for (const std::string_view type :
       {kManifestType, kIndexType, kDockerManifestType, kDockerIndexType}) {
    accept.emplace_back("Accept", type);
  }
  return accept;
}

std::string Registry::State::manifest_place(const std::string& name) const {
  return fmt::format("{}/{}:{}", where.host(), where.repository(), name);
}

Registry::Registry(Http& http, const Reference& where, RegistryOptions options)
    : state_(std::make_unique<State>(http, where, std::move(options))) {}
Registry::~Registry() = default;

std::string Registry::login_told() const { return state_->authorizer.told(); }

Error Registry::no_image(const Reference& from) const {
  return failure("not-found", "the registry has no image `{}`", from.str())
      .because(login_told())
      .hint("check repository and tag; a registry may also hide what it does not let you read");
}

bool Registry::has_blob(const Digest& digest) {
  HttpRequest request;
  request.method = "HEAD";
  request.url = state_->url("blobs/" + digest.str());
  const HttpResponse response = state_->call(request);
  if (response.status == 200) return true;
  if (response.status == 404) return false;
  throw state_->refused(response, "say whether it has a blob");
}

void Registry::download_blob(const Descriptor& blob, int file,
                             const std::function<void(std::uint64_t)>& advance) {
  Download what;
  what.url = state_->url("blobs/" + blob.digest.str());
  what.digest = blob.digest;
  what.size_bytes = blob.size_bytes;
  what.keep_tls = true;
  what.machine_login = false;
  std::string used = state_->authorize(what.headers, what.url);
  // A token that was renewed and still is refused is not renewed again, unless it had worked
  // meanwhile (they live for minutes, a large layer may take longer).
  std::uint64_t received = 0;
  std::optional<std::uint64_t> renewed_at;
  what.authorize = [&](const HttpResponse& refusal, HttpHeaders& headers) {
    if (renewed_at == received || !state_->renew(refusal, used)) return false;
    renewed_at = received;
    used = state_->authorize(headers, what.url);
    return true;
  };
  const auto count = [&](std::uint64_t amount) {
    received += amount;
    if (advance) advance(amount);
  };
  while_doing(fmt::format("fetching blob {} of `{}/{}`", blob.digest.brief(), state_->where.host(),
                          state_->where.repository()),
              [&] {
                try {
                  state_->http.download(what, file, count);
                } catch (Error& error) {
                  if (error.code() == "http-status") error.because(login_told());
                  throw;
                }
              });
}

std::optional<Registry::Manifest> Registry::get_unresolved(const std::string& name) {
  HttpRequest request;
  request.url = state_->url("manifests/" + name);
  request.answer_limit = size_limit::kManifest;  // distribution-spec: at least
  request.headers = state_->manifest_types();
  HttpResponse response = state_->call(request);
  if (response.status == 404) return std::nullopt;
  if (response.status != 200) throw state_->refused(response, "give a manifest");
  const Digest found = Digest::of(response.body);
  const std::string promised =
      name.starts_with("sha256:") ? name : response.header("docker-content-digest").value_or("");
  if (promised.starts_with("sha256:") && promised != found.str()) {
    throw failure("digest-mismatch", "the manifest `{}` is not what was promised",
                  state_->manifest_place(name))
        .because(fmt::format("needs {}, found {}", promised, found.str()));
  }
  std::string type = response.header("content-type").value_or("");
  type.resize(std::min(type.find(';'), type.size()));
  return Manifest{std::move(response.body), type, found};
}

std::optional<Registry::Manifest> Registry::get_manifest(const std::string& name) {
  std::string next = name;
  for (int indexes = 0; indexes <= kMostIndexes; ++indexes) {
    std::optional<Manifest> found = get_unresolved(next);
    if (!found || !is_index(found->media_type, found->bytes)) return found;
    const std::string what = state_->manifest_place(next);
    next = choose_platform(found->bytes, what, state_->options.platform).str();
  }
  throw failure("bad-image", "the index `{}` leads from one index to the next",
                state_->manifest_place(name))
      .because(fmt::format("{} of them name no image", kMostIndexes + 1));
}

bool Registry::has_manifest(const Digest& digest) {
  HttpRequest request;
  request.method = "HEAD";
  request.url = state_->url("manifests/" + digest.str());
  request.headers = state_->manifest_types();
  const HttpResponse response = state_->call(request);
  if (response.status == 200) return true;
  if (response.status == 404) return false;
  throw state_->refused(response, "say whether it has a manifest");
}

Registry::BlobAccess Registry::blob_access(const Digest& manifest) {
  const std::string place = state_->where.host() + "/" + state_->where.repository();
  if (!has_manifest(manifest)) {
    throw failure("not-found", "`{}` has no image {}", place, manifest.str())
        .because(login_told())
        .hint(fmt::format("`mlenv push IMAGE {}` brings one there", place));
  }
  BlobAccess access;
  access.authorization = state_->authorizer.current();
  if (!access.authorization.empty() && !access.authorization.starts_with("Bearer ")) {
    throw failure("password-only", "`{}` gives no tokens: it wants the password itself",
                  state_->where.host())
        .because("mlenv gives nobody else a password")
        .hint(
            "leave the registry out: the layers come from here then. A registry with a token "
            "server, or one that lets everybody pull, can be used");
  }
  access.url = state_->url("blobs/");
  access.plain_http = access.url.starts_with("http:");
  access.any_certificate = state_->options.insecure || state_->options.skip_verify;
  return access;
}

void Registry::put_manifest(const std::string& name, std::string_view bytes,
                            std::string_view media_type) {
  HttpRequest request;
  request.method = "PUT";
  request.url = state_->url("manifests/" + name);
  request.headers = {{"Content-Type", std::string(media_type)}};
  request.body = [bytes] { return std::make_unique<MemorySource>(as_bytes(bytes)); };
  request.body_bytes = bytes.size();
  const HttpResponse response = state_->call(request);
  if (response.status / 100 != 2) throw state_->refused(response, "accept the manifest");
}

}  // namespace mlenv
