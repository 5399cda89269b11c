#pragma once
// One HTTP exchange over libcurl: no retry, no redirect. Connections are kept between exchanges.
// HTTP/1.1 only: each exchange has a connection of its own, so HTTP/2 would add copies and win
// nothing.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/http.hpp"
#include "base/http_url.hpp"

namespace mlenv::http {

struct BasicLogin {
  std::string user, password;
};

struct Exchange {
  std::string method;
  Url url;
  HttpHeaders headers;
  std::function<std::unique_ptr<Source>()> body;  ///< null: none
  std::uint64_t body_bytes = 0;
  std::uint64_t answer_limit = 0;  ///< of bytes kept in the response; `too-large` past it
  std::chrono::milliseconds connect_timeout{};
  std::chrono::milliseconds stall_timeout{};
  std::chrono::milliseconds answer_timeout{};  ///< from the request's last byte; of kept answers
  std::uint64_t least_rate = 0;                ///< bytes a second
  /// Goes along as Basic authentication (RFC 7617). Whoever sets it has asked the login policy.
  std::optional<BasicLogin> login;
  /// Asked once, when the head of a 2xx answer is there: where its body goes. Null function or null
  /// answer: into the response.
  std::function<Sink*(const HttpResponse&)> route;
};

/// Why no whole answer came.
struct Broken {
  enum class Sort {
    unreachable,  ///< not resolved, refused, no TLS, and never reached yet: worth a few tries
    interrupted,  ///< broke while under way: worth all tries
    slow,         ///< below the least rate, or past the answer's deadline: worth one more try
    hopeless,     ///< the same again next time
    untrusted     ///< the server's certificate, or our files to check it with
  };
  Sort sort = Sort::interrupted;
  std::string reason;
  std::string hint;
};

struct Outcome {
  HttpResponse response;  ///< as far as it came
  std::optional<Broken> broken;
  std::optional<std::chrono::seconds> retry_after;
  std::optional<std::string> location;
};

/// `network` or `certificate`, with the reason and hint of `broken`.
Error broken_error(const Broken& broken, std::string headline);

/// Idle libcurl handles with their open connections. Safe from many threads.
class Connections {
 public:
  explicit Connections(const HttpOptions& options);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;
  /// Rethrows what the body or the sink threw.
  Outcome perform(const Exchange& exchange);
  /// As Http::set_tls.
  void set_tls(const Url& place, const HostTls& tls);

 private:
  class Handle;
  Handle take(const std::string& origin);
  /// True when the place that it leads to has answered once.
  bool put_back(Handle handle, bool reached);

  struct Trust {
    std::string file, folder;
    std::string bundle;            ///< PEM text that replaces `file`
    std::string certificate, key;  ///< files; empty: none is shown
    bool verify = true;
  };
  /// Trusts the authorities of these files too.
  static void add_authorities(Trust& trust, const std::vector<std::string>& files);
  Trust trust_of(const std::string& origin);
  /// libcurl opens files by name, and would wait for a pipe in the place of one.
  static void check_files(const Trust& trust);
  static void set_authorities(const Handle& handle, const Trust& trust);
  void prepare(Handle& handle, const Trust& trust) const;

  std::string user_agent_;
  Trust trust_;
  std::mutex mutex_;
  std::vector<Handle> idle_;
  std::set<std::string> reached_;
  std::map<std::string, Trust> special_;  ///< by origin
};

/// What the environment says about certificates: CURL_CA_BUNDLE, else SSL_CERT_FILE and
/// SSL_CERT_DIR, as the curl program reads them (the library itself does not). Empty: the built-in
/// places.
struct EnvironmentTrust {
  std::string file, folder;
};
EnvironmentTrust environment_trust();
/// The one of these variables that names the file of authorities, or would, for messages.
std::string_view trust_variable();
/// $NETRC, else ~/.netrc; empty where there is no home.
std::string environment_netrc();

}  // namespace mlenv::http
