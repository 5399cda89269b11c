#include "base/http_url.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/http.hpp"
#include "base/text.hpp"

namespace mlenv::http {
namespace {

using Parsed = Owned<curl_url_cleanup>::of<CURLU>;

std::string part(CURLU* url, CURLUPart which, unsigned flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url, which, &text, flags) != CURLUE_OK) return {};
  const Owned<curl_free>::of<char> owner{text};
  return text;
}

/// Takes user-info and fragment out of `parsed`.
Url without_user_info(CURLU* parsed) {
  Url url;
  url.scheme = part(parsed, CURLUPART_SCHEME);
  url.host = part(parsed, CURLUPART_HOST);
  url.port = part(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.user = part(parsed, CURLUPART_USER, CURLU_URLDECODE);
  url.password = part(parsed, CURLUPART_PASSWORD, CURLU_URLDECODE);
  for (const CURLUPart drop : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT}) {
    curl_url_set(parsed, drop, nullptr, 0);
  }
  url.text = part(parsed, CURLUPART_URL);
  return url;
}

bool is_http(const Url& url) { return url.scheme == "http" || url.scheme == "https"; }

}  // namespace

Url parse_url(std::string_view text) {
  const Parsed parsed{curl_url()};
  const CURLUcode code = curl_url_set(parsed.get(), CURLUPART_URL, std::string(text).c_str(), 0);
  if (code != CURLUE_OK) {
    throw usage_error("bad-url", "`{}` is not a URL", display_url(text))
        .because(curl_url_strerror(code));
  }
  Url url = without_user_info(parsed.get());
  if (!is_http(url)) {
    throw usage_error("bad-url", "`{}` is neither http nor https", display_url(text));
  }
  return url;
}

Url resolve_url(const Url& base, std::string_view location) {
  const Parsed parsed{curl_url()};
  curl_url_set(parsed.get(), CURLUPART_URL, base.text.c_str(), 0);
  const CURLUcode code =
      curl_url_set(parsed.get(), CURLUPART_URL, std::string(location).c_str(), CURLU_URLENCODE);
  Url url = code == CURLUE_OK ? without_user_info(parsed.get()) : Url{};
  if (!is_http(url)) {
    throw failure("network", "`{}` redirects to `{}`, which is not a web address",
                  display_url(base.text), display_url(location));
  }
  if (same_origin(base, url) && url.user.empty()) {
    url.user = base.user;
    url.password = base.password;
  }
  return url;
}

bool same_origin(const Url& a, const Url& b) {
  return a.scheme == b.scheme && a.port == b.port &&
         std::equal(a.host.begin(), a.host.end(), b.host.begin(), b.host.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

std::string origin_of(const Url& url) { return url.scheme + "://" + url.host + ":" + url.port; }

bool is_loopback(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  const bool dotted =
      std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || is_digit(c); });
  return dotted && host.starts_with("127.") && std::count(host.begin(), host.end(), '.') == 3;
}

}  // namespace mlenv::http

namespace mlenv {
namespace {

std::string percent_encode(std::string_view text, std::string_view also_plain) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = is_alphanumeric(c) ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       also_plain.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return out;
}

}  // namespace

// By hand, since it must also work on what is not a URL.
std::string display_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t scheme = url.find("://");
  const std::size_t authority = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::size_t path = std::min(url.find('/', authority), url.size());
  const std::size_t at = url.substr(0, path).rfind('@');
  std::string out{url.substr(0, authority)};
  if (at != std::string_view::npos && at >= authority) {
    out += url.substr(at + 1);
  } else {
    out += url.substr(authority);
  }
  return out;
}

std::string url_path_encode(std::string_view text) { return percent_encode(text, "/"); }

std::string url_query_encode(std::string_view text) { return percent_encode(text, ""); }

}  // namespace mlenv
