#pragma once
// What lies between the calls of Http and single exchanges: redirects, pauses, tries.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/hash_exchange.hpp"
#include "base/http.hpp"
#include "base/http_transfer.hpp"
#include "base/netrc.hpp"

namespace mlenv {
namespace http {

/// Waits between tries.
class Timer {
 public:
  void wait(const HttpOptions& options, std::chrono::milliseconds pause);

 private:
  std::mutex mutex_;
  std::condition_variable never_;
};

/// Counts the tries of one call and waits between them.
class Attempts {
 public:
  Attempts(const HttpOptions& options, Timer& timer, bool allowed)
      : options_(options), timer_(timer), allowed_(allowed) {}
  /// True, after a pause, when `outcome` is worth another try and one is left.
  bool another(const Outcome& outcome);
  /// The next break counts as the first.
  void forgive() { failed_ = 0; }
  /// `no answer from …` or `… broke off`, with the number of tries.
  std::string headline(std::string_view url) const;

 private:
  const HttpOptions& options_;
  Timer& timer_;
  bool allowed_;
  int failed_ = 0;
};

/// 408, 429, 500, 502, 503, 504.
bool is_transient(long status);

/// `http-status` with the server's own words where it gave any.
Error status_error(const HttpResponse& response, std::string_view url);

}  // namespace http

struct Http::State {
  explicit State(HttpOptions given) : options(std::move(given)), connections(options) {}

  /// One try with its redirects (RFC 9110 §15.4) and, where `request` wants that and the login
  /// policy lets it, a second one with this machine's login when the first is challenged. Throws
  /// only what the body or the sink threw, for redirects that go nowhere, and for a netrc file that
  /// cannot be read.
  http::Outcome follow(const HttpRequest& request,
                       const std::function<Sink*(const HttpResponse&)>& route,
                       bool may_leave_tls = false);
  /// Sets `exchange.login`, or says in `refusal` why not.
  bool answer_challenge(http::Exchange& exchange, const http::Url& asked, HttpResponse& refusal);
  /// Some servers hide from strangers what there is by 403 or 404, and never ask: says in `refusal`
  /// that a login for this very origin was held back.
  void tell_held_back(const http::Exchange& exchange, HttpResponse& refusal);
  /// Whether the origin has challenged a request, and was answered with a login.
  bool was_challenged(const http::Url& to);
  std::optional<NetrcLogin> netrc_login(const http::Url& to);

  HttpOptions options;
  http::Connections connections;
  http::Timer timer;
  HashExchange hashes;  ///< of downloads that run at the same time

 private:
  std::mutex netrc_mutex_;
  std::optional<std::string> netrc_;  ///< its text, once it was needed
  std::set<std::string> challenged_;  ///< origins whose challenge was answered
};

}  // namespace mlenv
