#include "base/http_running.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv::http {
namespace {

constexpr std::size_t kErrorBodyBytes = std::size_t{64} << 10;

Broken::Sort sort_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return Broken::Sort::unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
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
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "correct the proxy's name in HTTPS_PROXY or http_proxy";
    case CURLE_COULDNT_RESOLVE_HOST:
      return fmt::format(
          "check the name `{}`, and whether this machine needs a proxy (HTTPS_PROXY)", url.host);
    case CURLE_PEER_FAILED_VERIFICATION:
      return std::string(kPrivateAuthorityHint);
    case CURLE_SSL_CACERT_BADFILE:
      return "correct the file name in CURL_CA_BUNDLE or SSL_CERT_FILE";
    default:
      return {};
  }
}

}  // namespace

void Running::configure(CURL* curl) {
  curl_easy_setopt(curl, CURLOPT_URL, exchange_.url.text.c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Running::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Running::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Running::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(exchange_.connect_timeout.count()));
  if (!exchange_.url.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_USERNAME, exchange_.url.user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, exchange_.url.password.c_str());
  }
  // A proxy cannot reach our own loopback.
  if (is_loopback(exchange_.url.host)) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  configure_body(curl);
  for (const auto& [name, value] : exchange_.headers) {
    const std::string line = value.empty() ? name + ";" : fmt::format("{}: {}", name, value);
    curl_slist* const grown = curl_slist_append(headers.get(), line.c_str());
    if (grown == nullptr) throw Error{Kind::internal, "network", "out of memory for headers"};
    static_cast<void>(headers.release());
    headers.reset(grown);
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
}

void Running::configure_body(CURL* curl) {
  if (exchange_.body) {
    start_body();
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(exchange_.body_bytes));
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, &Running::on_upload);
    curl_easy_setopt(curl, CURLOPT_READDATA, this);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, &Running::on_seek);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, this);
  } else if (exchange_.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (exchange_.method == "POST" || exchange_.method == "PUT" ||
             exchange_.method == "PATCH") {
    // Says Content-Length: 0, which some servers insist on (RFC 9110 §8.6).
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, exchange_.method.c_str());
}

void Running::take_header(std::string_view line) {
  HttpResponse& response = outcome.response;
  if (line.starts_with("HTTP/")) {  // also after 100 Continue: what came before does not count
    response.headers.clear();
    response.status = 0;
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    std::from_chars(line.data() + space + 1, line.data() + line.size(), response.status);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  response.headers.emplace_back(to_lower(trim(line.substr(0, colon))),
                                trim(line.substr(colon + 1)));
}

void Running::take_body(ByteView data) {
  const bool success = outcome.response.status / 100 == 2;
  if (!routed_) {
    routed_ = true;
    if (success && exchange_.route) sink_ = exchange_.route(outcome.response);
  }
  if (sink_ != nullptr) {
    sink_->write(data);
    return;
  }
  std::string& body = outcome.response.body;
  if (!success && exchange_.route) {  // only for a message
    body += as_text(data.first(std::min(data.size(), kErrorBodyBytes - body.size())));
    return;
  }
  if (body.size() + data.size() > exchange_.answer_limit) {
    throw failure("too-large", "the answer of `{}` is longer than {} bytes",
                  display_url(exchange_.url.text), exchange_.answer_limit);
  }
  body += as_text(data);
}

std::size_t Running::give_body(ByteSpan out) {
  const std::size_t count = body_->read(out);
  given_ += count;
  // Otherwise both sides would wait for each other.
  if (count == 0 && given_ < exchange_.body_bytes) {
    throw failure("truncated", "what is sent to `{}` ends after {} of {} bytes",
                  display_url(exchange_.url.text), given_, exchange_.body_bytes);
  }
  return count;
}

/// libcurl calls this at least once a second. Time spent in our own callbacks does not count: bytes
/// move there.
bool Running::watch(curl_off_t bytes) {
  const Clock::time_point now = Clock::now();
  if (bytes != seen_bytes_) {
    seen_bytes_ = bytes;
    seen_at_ = now;
  }
  stalled = now - seen_at_ >= exchange_.stall_timeout;
  return !stalled;
}

Broken describe(CURL* curl, CURLcode code, const Running& running, const Exchange& exchange) {
  long os_errno = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os_errno);
  Broken broken;
  broken.sort = sort_of(code);
  broken.hint = hint_of(code, exchange.url);
  if (running.stalled) {
    broken.reason = fmt::format("no byte moved for {:.0f} seconds",
                                std::chrono::duration<double>(exchange.stall_timeout).count());
  } else {
    const std::string_view text{running.reason.data()};
    broken.reason = text.empty() ? std::string(curl_easy_strerror(code)) : std::string(text);
    if (code == CURLE_COULDNT_CONNECT && os_errno != 0) {
      broken.reason = broken.reason.substr(0, broken.reason.find(" after ")) + ": " +
                      errno_text(static_cast<int>(os_errno));
    }
  }
  while (broken.reason.ends_with('.') || broken.reason.ends_with('\n')) broken.reason.pop_back();
  return broken;
}

}  // namespace mlenv::http
