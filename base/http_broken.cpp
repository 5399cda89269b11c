// Why an exchange broke, in words that help, and without anybody's login.
#include <algorithm>

#include "base/error.hpp"
#include "base/http_retry.hpp"
#include "base/http_running.hpp"
#include "base/proxy_words.hpp"
#include "base/text.hpp"

namespace mlenv::http {
namespace {

// X509_V_ERR_… of OpenSSL's x509_vfy.h, which CURLINFO_SSL_VERIFYRESULT gives.
constexpr long kNotYetValid = 9;
constexpr long kExpired = 10;

Broken::Sort sort_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return Broken::Sort::unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return Broken::Sort::untrusted;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_ABORTED_BY_CALLBACK:
    case CURLE_AGAIN:
      return Broken::Sort::interrupted;
    default:
      return Broken::Sort::hopeless;
  }
}

std::string hint_of(CURLcode code, const Url& url) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
      return fmt::format(
          "check the name `{}`, and whether this machine needs a proxy (HTTPS_PROXY)", url.host);
    case CURLE_SSL_CACERT_BADFILE:
      return fmt::format(
          "put a whole file of certificates (PEM) where {} and this machine's `certs.d` have one",
          trust_variable());
    case CURLE_SSL_CERTPROBLEM:
      return fmt::format(
          "correct the certificate and its key that this machine's `certs.d` has for `{}`: PEM, a "
          "key without a passphrase",
          url.host);
    default:
      return {};
  }
}

/// `DNS:a.example, DNS:b.example` of the server's certificate; empty where libcurl does not tell.
std::string names_in_certificate(CURL* curl) {
  curl_certinfo* chain = nullptr;
  curl_easy_getinfo(curl, CURLINFO_CERTINFO, &chain);
  if (chain == nullptr || chain->num_of_certs < 1) return {};
  constexpr std::string_view kNames = "Subject Alternative Name:";
  for (const curl_slist* line = chain->certinfo[0]; line != nullptr; line = line->next) {
    const std::string_view text{line->data};
    const std::size_t at = text.find(kNames);
    if (at == std::string_view::npos) continue;
    constexpr std::size_t kLongest = 300;
    return std::string(trim(text.substr(at + kNames.size()))).substr(0, kLongest);
  }
  return {};
}

/// What helps when the server's certificate is refused: the clock, another name, an authority.
void judge_certificate(CURL* curl, std::string_view text, const Exchange& exchange,
                       Broken& broken) {
  long verdict = 0;
  curl_easy_getinfo(curl, CURLINFO_SSL_VERIFYRESULT, &verdict);
  const auto says = [&](std::string_view words) { return text.find(words) != text.npos; };
  if (verdict == kExpired || verdict == kNotYetValid || says("expired") || says("not yet valid")) {
    broken.hint = fmt::format(
        "check this machine's clock (`date`); if it is right, whoever runs `{}` has to renew its "
        "certificate",
        exchange.url.host);
  } else if (says("subject name") || says("subjectAltName") || says("does not match")) {
    const std::string names = names_in_certificate(curl);
    broken.hint = fmt::format("use the server by a name that its certificate has{}{}",
                              names.empty() ? "" : ": ", names);
  } else {
    broken.hint = fmt::format(
        "when the server has a private certificate authority, name its certificate file in {}",
        trust_variable());
  }
}

/// A proxy that says no to CONNECT says so again: only what is of the moment is worth a retry.
void judge_tunnel(CURL* curl, const Exchange& exchange, Broken& broken) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_HTTP_CONNECTCODE, &status);
  if (status < 300) return;
  if (status == kProxyLogin) {
    broken = proxy_wants_login();
  } else if (!is_transient(status)) {
    broken.sort = Broken::Sort::hopeless;
    broken.reason = fmt::format("the proxy answered {} when asked for `{}`", status,
                                display_url(exchange.url.text));
    broken.hint = fmt::format(
        "ask whoever runs the proxy (HTTPS_PROXY), or name `{}` in NO_PROXY if it can be reached "
        "without",
        exchange.url.host);
  }
}

/// Neither tunnel nor TLS came about. `put_back` knows whether anybody ever answered there.
bool never_connected(CURL* curl) {
  curl_off_t until = 0;
  curl_easy_getinfo(curl, CURLINFO_PRETRANSFER_TIME_T, &until);
  return until == 0;
}

bool is_about_proxy(CURLcode code, std::string_view reason) {
  return code == CURLE_COULDNT_RESOLVE_PROXY || reason.starts_with("Unsupported proxy");
}

}  // namespace

Broken proxy_wants_login() {
  return {Broken::Sort::hopeless, "the proxy wants a login, or another one than it got (407)",
          "put user and password into the proxy's URL (HTTPS_PROXY, for `http://` http_proxy)"};
}

Broken describe(CURL* curl, CURLcode code, const Running& running, const Exchange& exchange) {
  long os_errno = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os_errno);
  const std::string_view text{running.reason.data()};
  Broken broken;
  broken.sort = sort_of(code);
  broken.hint = hint_of(code, exchange.url);
  if (is_about_proxy(code, text)) {
    broken.sort =
        code == CURLE_COULDNT_RESOLVE_PROXY ? Broken::Sort::unreachable : Broken::Sort::hopeless;
    broken.hint = "correct the proxy's address in HTTPS_PROXY or http_proxy";
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION) judge_certificate(curl, text, exchange, broken);
  const double seconds = std::chrono::duration<double>(exchange.stall_timeout).count();
  if (running.slow || running.late) broken.sort = Broken::Sort::slow;
  if (running.slow) {
    broken.reason = fmt::format("fewer than {} bytes came in each second, over {:.0f} seconds",
                                exchange.least_rate, seconds);
  } else if (running.late) {
    broken.reason = fmt::format("the answer was not whole within {:.0f} seconds",
                                std::chrono::duration<double>(exchange.answer_timeout).count());
  } else if (running.stalled) {
    broken.reason = fmt::format("no byte moved for {:.0f} seconds", seconds);
  } else {
    broken.reason = without_proxy(std::string(text.empty() ? curl_easy_strerror(code) : text));
    if (code == CURLE_COULDNT_CONNECT && os_errno != 0) {
      broken.reason = broken.reason.substr(0, broken.reason.find(" after ")) + ": " +
                      errno_text(static_cast<int>(os_errno));
    }
  }
  while (broken.reason.ends_with('.') || broken.reason.ends_with('\n')) broken.reason.pop_back();
  if (broken.sort == Broken::Sort::interrupted && never_connected(curl)) {
    broken.sort = Broken::Sort::unreachable;
    judge_tunnel(curl, exchange, broken);
  }
  return broken;
}

}  // namespace mlenv::http
