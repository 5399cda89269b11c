#pragma once
// What is said to curl(1) and what it answers: its configuration, the head of an HTTP answer before
// the body (`include`), where a redirect leads, and what its statuses mean. Plain.
//
// Redirects are followed by us, one curl after the other: which of curl's versions keeps a login
// from another host, port or scheme differs (before 7.58 none, before 7.83 not all).
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mlenv::job {

/// One request. `authorization` and, as it may be signed, `url` are secret: they go to curl's
/// standard input and nowhere else.
struct CurlRequest {
  std::string url;
  std::string authorization;  ///< empty: none
  bool any_certificate = false;
  std::uint64_t first = 0;  ///< byte
  std::uint64_t last = 0;   ///< byte, included
};

/// For `curl -q --config -`.
std::string render_curl_config(const CurlRequest& request);

/// The head of an answer.
struct AnswerHead {
  unsigned status = 0;
  std::string location;               ///< of a redirect
  std::optional<std::uint64_t> from;  ///< Content-Range: its first byte
};

/// Heads out of what curl writes; what a proxy says before the tunnel, and interim answers (1xx),
/// are passed over.
class AnswerReader {
 public:
  /// Takes what is of the head away from `bytes`. nullopt: more is to come. Throws `bad-stream`
  /// for what is no HTTP answer.
  std::optional<AnswerHead> take(std::string_view& bytes);

 private:
  std::string head_;
};

/// Where a Location header leads, seen from `url`. nullopt: nowhere that is gone to: another scheme
/// than http and https, from https to http, a login in the URL, anything malformed.
std::optional<std::string> redirected(std::string_view url, std::string_view location);
/// Scheme, host and port of both are the same; not of what is malformed.
bool same_origin_url(std::string_view a, std::string_view b);
/// `https://host:port/path`, without what may be secret in it.
std::string shown_url(std::string_view url);

/// An answer with that status, or an end of curl with that one, may be another one next time.
bool may_come_by_status(unsigned status);
bool may_come_by_exit(int code);

}  // namespace mlenv::job
