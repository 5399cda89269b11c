#pragma once
// HTTP through libcurl. Calls block and may be made from many threads at once; connections are kept
// and reused. Retrying lives here alone: bounded, jittered, honouring Retry-After, for requests
// that may be repeated. Proxies, CA files and logins: as the machine's own variables say
// (https_proxy, http_proxy, NO_PROXY; CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR; NETRC,
// else ~/.netrc). A login is sent when base/login_policy.hpp lets it, after a challenge. Loopback
// hosts are never asked through a proxy. HTTP/1.1 only.
//
// Every wait ends: no byte for `stall_timeout`; a body that comes more slowly than `least_rate`; an
// answer that is kept whole and takes longer than its limit does at `answer_rate`.
//
// Error codes: `network` (no whole answer; the reason is libcurl's), `certificate` (the server's is
// not trusted), `http-status`, `digest-mismatch`, `too-large`, `bad-url` (usage).
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest.hpp"

namespace mlenv {

class HashExchange;

/// What to do about `certificate`.
inline constexpr std::string_view kPrivateAuthorityHint =
    "when the server has a private certificate authority, name its certificate file in "
    "SSL_CERT_FILE";

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string url{};
  HttpHeaders headers{};
  /// Called for each try, so that a body can be sent again. Null: no body.
  std::function<std::unique_ptr<Source>()> body{};
  std::uint64_t body_bytes = 0;
  bool follow_redirects = true;  ///< credentials are dropped when host, port or scheme change
  /// Repeat on connection failures, 408, 429, 500, 502–504. Whoever sends what must not happen
  /// twice turns it off.
  bool retry = true;
  /// Called after the pause and before each retry; may change the request (an upload that goes on
  /// elsewhere). True: there was progress, tries count anew. What it throws ends `send`.
  std::function<bool(HttpRequest&)> mend{};
  std::uint64_t answer_limit = std::uint64_t{64} << 20;  ///< `too-large` past it
  std::chrono::milliseconds connect_timeout{0};          ///< 0: as in HttpOptions
  std::chrono::milliseconds stall_timeout{0};            ///< 0: as in HttpOptions
  /// Answers a challenge with the URL's user-info, else with ~/.netrc. False: whoever asks has
  /// logins of its own.
  bool machine_login = true;
};

struct HttpResponse {
  long status = 0;
  HttpHeaders headers;  ///< names in lower case
  std::string body;
  std::string url;  ///< the last one after redirects
  /// Of 401, 403 and 404: why no login of this machine's went along; for messages.
  std::string no_login{};
  /// First header of that (lower-case) name, or nullopt.
  std::optional<std::string> header(std::string_view name) const;
};

struct HttpOptions {
  std::chrono::milliseconds connect_timeout{30'000};
  std::chrono::milliseconds stall_timeout{60'000};  ///< no byte for so long is a broken connection
  /// Bytes a second of a body, over `stall_timeout`: what comes more slowly is broken, too. A modem
  /// is faster.
  std::uint64_t least_rate = 1'000;
  /// Bytes a second: an answer that is kept whole may take `stall_timeout` and the time that
  /// `answer_limit` bytes take at this rate.
  std::uint64_t answer_rate = std::uint64_t{32} << 10;
  int tries = 5;                               ///< at most 3 for a host that never answered yet
  std::chrono::milliseconds first_pause{500};  ///< doubled at each retry, with jitter
  std::chrono::seconds longest_pause{120};     ///< a Retry-After beyond it is not waited for
  /// Waits between tries; null: really. For tests.
  std::function<void(std::chrono::milliseconds)> pause;
  std::string user_agent = "mlenv";
  std::vector<std::string> extra_ca_files;
  bool verify_tls = true;
  std::string netrc;  ///< empty: $NETRC, else ~/.netrc
};

/// What is downloaded and how it is known to be right.
struct Download {
  std::string url{};
  std::optional<Digest> digest{};  ///< nullopt: not verified (only indexes with own proof)
  std::optional<std::uint64_t> size_bytes{};  ///< stop as soon as more arrives
  HttpHeaders headers{};
  /// Redirects from https to http are refused even where a digest proves the bytes: others on the
  /// way are not to read them.
  bool keep_tls = false;
  /// What else is hashed at the same time (base/hash_exchange.hpp); null: other downloads alone.
  HashExchange* hashes = nullptr;
  /// Called on a 401; may change the headers. True: ask again with them. Null: a 401 is final.
  std::function<bool(const HttpResponse&, HttpHeaders&)> authorize{};
  bool machine_login = true;  ///< as HttpRequest's
};

/// What holds for TLS with one place beside what the machine says. Files are PEM.
struct HostTls {
  std::vector<std::string> authorities;  ///< trusted beside the machine's own
  std::string certificate;               ///< shown to the server; empty: none
  std::string key;                       ///< of `certificate`
  bool verify = true;                    ///< false: any certificate is taken
};

class Http {
 public:
  explicit Http(HttpOptions options = {});
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  /// From now on for TLS with that place (of an https URL: its host and port), and with no other,
  /// wherever it redirects to. Throws when an authority's file cannot be read.
  void set_tls(std::string_view url, const HostTls& tls);

  /// Any status is an answer; throws `network` or `certificate` when none came after the last try.
  /// Messages carry the URL without user-info and query.
  HttpResponse send(const HttpRequest& given);

  /// Writes the body to `file` (an open, seekable descriptor at offset 0), continuing with Range
  /// requests after a break, hashing as it goes (without a digest: under If-Range where the server
  /// gave a strong validator, else from the start).
  /// Throws `network` or `certificate` after the last try (tries without progress; 1 MiB counts),
  /// `http-status` for a final non-2xx answer, `digest-mismatch` when the bytes are not what was
  /// promised (the file is tried once more from the start before that). `advance` gets byte counts,
  /// none twice (may be null).
  void download(const Download& what, int file, const std::function<void(std::uint64_t)>& advance);

  /// Streams the body of a 2xx answer; no resume, and no retry once a byte went to `sink`. Throws
  /// as `download` does.
  void stream(const HttpRequest& request, Sink& sink);

  struct State;  ///< private to base/http*.cpp

 private:
  std::unique_ptr<State> state_;
};

/// `https://user:secret@host/path?token=…` → `https://host/path`, for messages.
std::string display_url(std::string_view url);
/// Percent-encodes everything but unreserved characters and `/`.
std::string url_path_encode(std::string_view text);
/// Percent-encodes for a query value.
std::string url_query_encode(std::string_view text);

}  // namespace mlenv
