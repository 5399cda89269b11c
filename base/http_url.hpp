#pragma once
// The parts of a URL that HTTP here needs. Parsing and resolving are libcurl's (RFC 3986).
#include <string>
#include <string_view>

namespace mlenv::http {

struct Url {
  std::string text;  ///< the whole URL without user-info and fragment
  std::string scheme, host, port;
  std::string user, password;  ///< decoded
  friend bool operator==(const Url&, const Url&) = default;
};

/// Throws `bad-url` (usage) when it is not an absolute http or https URL.
Url parse_url(std::string_view text);

/// What a Location header means, seen from `base` (RFC 3986 §5). User-info of `base` stays when
/// scheme, host and port do. Throws `network` when it leads nowhere.
Url resolve_url(const Url& base, std::string_view location);

bool same_origin(const Url& a, const Url& b);
/// `https://example.org:443`.
std::string origin_of(const Url& url);

/// `localhost` and what ends in `.localhost`, 127.0.0.0/8, ::1 (with or without brackets).
bool is_loopback(std::string_view host);

}  // namespace mlenv::http
