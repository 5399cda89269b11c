#include "base/http_transfer.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "base/files.hpp"
#include "base/handle.hpp"
#include "base/http_running.hpp"
#include "base/log.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"

namespace mlenv::http {
namespace {

using Easy = Owned<curl_easy_cleanup>::of<CURL>;

// libcurl's own maximum for receiving; a large one costs memory only while a transfer runs.
constexpr long kReceiveBytes = 512L << 10;
constexpr long kUploadBytes = 1L << 20;
constexpr std::size_t kIdleHandles = 32;

// The one place outside cli/settings that reads the environment: these variables belong to the
// machine, not to mlenv.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return value == nullptr ? std::string{} : std::string{value};
}

}  // namespace

EnvironmentTrust environment_trust() {
  EnvironmentTrust trust;
  trust.file = environment("CURL_CA_BUNDLE");
  if (trust.file.empty()) {
    trust.file = environment("SSL_CERT_FILE");
    trust.folder = environment("SSL_CERT_DIR");
  }
  return trust;
}

std::string_view trust_variable() {
  return environment("CURL_CA_BUNDLE").empty() ? "SSL_CERT_FILE" : "CURL_CA_BUNDLE";
}

std::string environment_netrc() {
  if (std::string named = environment("NETRC"); !named.empty()) return named;
  const std::string home = environment("HOME");
  return home.empty() ? home : home + "/.netrc";
}

Error broken_error(const Broken& broken, std::string headline) {
  Error error{Kind::failed, broken.sort == Broken::Sort::untrusted ? "certificate" : "network",
              std::move(headline)};
  error.because(broken.reason);
  if (!broken.hint.empty()) error.hint(broken.hint);
  return error;
}

class Connections::Handle {
 public:
  explicit Handle(std::string to) : origin(std::move(to)), curl(curl_easy_init()) {
    if (!curl) throw Error{Kind::internal, "network", "cannot start libcurl"};
  }
  std::string origin;  ///< where its kept connection leads
  Easy curl;
};

Connections::Connections(const HttpOptions& options) : user_agent_(options.user_agent) {
  // Thread-safe and counted since libcurl 7.84; never cleaned up, like any library's own tables.
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error{Kind::internal, "network", "cannot start libcurl"};
  const EnvironmentTrust trust = environment_trust();
  trust_.file = trust.file;
  trust_.folder = trust.folder;
  trust_.verify = options.verify_tls;
  if (!options.extra_ca_files.empty()) add_authorities(trust_, options.extra_ca_files);
}

Connections::~Connections() = default;

void Connections::add_authorities(Trust& trust, const std::vector<std::string>& files) {
  if (trust.bundle.empty()) {
    const char* const built_in = curl_version_info(CURLVERSION_NOW)->cainfo;
    const std::string usual = trust.file.empty() && built_in != nullptr ? built_in : trust.file;
    trust.bundle = read_small_file_if_exists(usual, size_limit::kCertificates).value_or("");
  }
  for (const std::string& file : files) {
    trust.bundle += "\n" + read_small_file(file, size_limit::kCertificates);
  }
}

void Connections::set_tls(const Url& place, const HostTls& tls) {
  Trust trust = trust_;
  if (!tls.authorities.empty()) add_authorities(trust, tls.authorities);
  trust.certificate = tls.certificate;
  trust.key = tls.key;
  trust.verify = trust.verify && tls.verify;
  const std::lock_guard lock{mutex_};
  special_.insert_or_assign(origin_of(place), std::move(trust));
}

Connections::Trust Connections::trust_of(const std::string& origin) {
  const std::lock_guard lock{mutex_};
  const auto special = special_.find(origin);
  return special == special_.end() ? trust_ : special->second;
}

void Connections::check_files(const Trust& trust) {
  const auto check = [](const std::string& file, std::string_view doing) {
    if (file.empty()) return;
    while_doing(doing, [&] { check_small_file(file, size_limit::kCertificates); });
  };
  if (trust.verify && trust.bundle.empty()) {
    check(trust.file, fmt::format("reading the certificates that {} names", trust_variable()));
  }
  check(trust.certificate, "reading this machine's certificate");
  check(trust.key, "reading the key of this machine's certificate");
}

Connections::Handle Connections::take(const std::string& origin) {
  const std::lock_guard lock{mutex_};
  // The newest with a connection to the same place, else the oldest.
  auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                            [&](const Handle& handle) { return handle.origin == origin; });
  if (found == idle_.rend() && idle_.size() < kIdleHandles) return Handle{origin};
  auto chosen = found == idle_.rend() ? idle_.begin() : std::prev(found.base());
  Handle handle = std::move(*chosen);
  idle_.erase(chosen);
  handle.origin = origin;
  return handle;
}

bool Connections::put_back(Handle handle, bool reached) {
  const std::lock_guard lock{mutex_};
  if (reached) reached_.insert(handle.origin);
  const bool known = reached_.contains(handle.origin);
  if (idle_.size() < kIdleHandles) idle_.push_back(std::move(handle));
  return known;
}

void Connections::set_authorities(const Handle& handle, const Trust& trust) {
  CURL* const curl = handle.curl.get();
  if (!trust.bundle.empty()) {
    std::string text = trust.bundle;
    curl_blob blob{text.data(), text.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
  } else if (!trust.file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, trust.file.c_str());
  }
  if (!trust.folder.empty()) curl_easy_setopt(curl, CURLOPT_CAPATH, trust.folder.c_str());
}

void Connections::prepare(Handle& handle, const Trust& trust) const {
  CURL* const curl = handle.curl.get();
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBytes);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, user_agent_.c_str());
  // Logins are sent where base/login_policy.hpp lets them: none by libcurl itself, and no header of
  // ours to a proxy.
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);  // names for a message
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, trust.verify ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, trust.verify ? 2L : 0L);
  // A proxy may be asked with TLS, too. What holds for the server alone is none of its.
  if (!trust_.file.empty()) curl_easy_setopt(curl, CURLOPT_PROXY_CAINFO, trust_.file.c_str());
  if (!trust_.folder.empty()) curl_easy_setopt(curl, CURLOPT_PROXY_CAPATH, trust_.folder.c_str());
  if (trust.verify) set_authorities(handle, trust);  // else libcurl would read them all the same
  if (!trust.certificate.empty()) {
    curl_easy_setopt(curl, CURLOPT_SSLCERT, trust.certificate.c_str());
    curl_easy_setopt(curl, CURLOPT_SSLKEY, trust.key.c_str());
    curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "");  // else OpenSSL asks at the terminal, and waits
  }
}

Outcome Connections::perform(const Exchange& exchange) {
  const Clock::time_point start = Clock::now();
  const std::string origin = origin_of(exchange.url);
  const Trust trust = trust_of(origin);
  if (exchange.url.scheme == "https") check_files(trust);
  Handle handle = take(origin);
  CURL* const curl = handle.curl.get();
  prepare(handle, trust);
  Running running{exchange};
  running.configure(curl);
  const CURLcode code = curl_easy_perform(curl);
  Outcome& outcome = running.outcome;
  if (code != CURLE_OK && !running.enough) {
    outcome.broken = describe(curl, code, running, exchange);
  } else if (outcome.response.status == kProxyLogin) {
    outcome.broken = proxy_wants_login();
  } else {
    curl_off_t seconds = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) outcome.retry_after = std::chrono::seconds{seconds};
    outcome.location = outcome.response.header("location");
  }
  log::debug("{} {}: {} in {:.3f} s{}{}", exchange.method, display_url(exchange.url.text),
             outcome.response.status, std::chrono::duration<double>(Clock::now() - start).count(),
             outcome.broken ? ", " : "", outcome.broken ? outcome.broken->reason : "");
  // Forgets our pointers; connections and DNS answers stay.
  curl_easy_reset(curl);
  const bool known = put_back(std::move(handle), outcome.response.status > 0);
  if (known && outcome.broken && outcome.broken->sort == Broken::Sort::unreachable) {
    outcome.broken->sort = Broken::Sort::interrupted;
  }
  if (running.thrown) std::rethrow_exception(running.thrown);
  return std::move(running.outcome);
}

}  // namespace mlenv::http
