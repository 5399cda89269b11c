#pragma once
// HTTP through libcurl. Calls block and may be made from many threads at once; connections are kept
// and reused. Retrying lives here alone: bounded, jittered, honouring Retry-After, for requests that
// may be repeated. Proxies, CA files and .netrc: as the machine's own variables say (HTTPS_PROXY,
// NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR, CURL_CA_BUNDLE).
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest.hpp"

namespace mlenv {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  HttpHeaders headers;
  /// Called for each try, so that a body can be sent again. Null: no body.
  std::function<std::unique_ptr<Source>()> body;
  std::uint64_t body_bytes = 0;
  bool follow_redirects = true;  ///< credentials are dropped when host, port or scheme change
  bool retry = true;             ///< repeat on connection failures, 408, 429, 500, 502–504
  std::uint64_t answer_limit = std::uint64_t{64} << 20;
};

struct HttpResponse {
  long status = 0;
  HttpHeaders headers;  ///< names in lower case
  std::string body;
  std::string url;  ///< the last one after redirects
  /// First header of that (lower-case) name, or nullopt.
  std::optional<std::string> header(std::string_view name) const;
};

struct HttpOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  std::chrono::seconds stall_timeout{60};  ///< no byte for this long is a broken connection
  int tries = 5;
  std::chrono::milliseconds first_pause{500};  ///< doubled at each retry, with jitter
  std::string user_agent = "mlenv";
  std::vector<std::string> extra_ca_files;
  bool verify_tls = true;
};

/// What is downloaded and how it is known to be right.
struct Download {
  std::string url;
  std::optional<Digest> digest;             ///< nullopt: not verified (only indexes with own proof)
  std::optional<std::uint64_t> size_bytes;  ///< stop as soon as more arrives
  HttpHeaders headers;
};

class Http {
 public:
  explicit Http(HttpOptions options = {});
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// Any status is an answer; throws `network` when none came after the last try. Messages carry the
  /// URL without user-info and query.
  HttpResponse send(const HttpRequest& request);

  /// Appends the body to `file` (an open descriptor, at its start), continuing with Range requests
  /// after a break (If-Range where the server gave a validator), hashing as it goes. Throws
  /// `network` after the last try, `http-status` for a final non-2xx answer, `digest-mismatch` when
  /// the bytes are not what was promised (the file is tried once more from the start before that).
  /// `advance` gets byte counts (may be null).
  void download(const Download& what, int file, const std::function<void(std::uint64_t)>& advance);

  /// Streams a GET's body; no resume. Throws as `download` does.
  void stream(const HttpRequest& request, Sink& sink);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `https://user:secret@host/path?token=…` → `https://host/path`, for messages.
std::string display_url(std::string_view url);
/// Percent-encodes everything but unreserved characters and `/`.
std::string url_path_encode(std::string_view text);
/// Percent-encodes for a query value.
std::string url_query_encode(std::string_view text);

}  // namespace mlenv
