#include "recipes/logins.hpp"

#include <algorithm>

#include "base/http.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kScheme = "://";

/// What may stand behind the colon of an authority without a login.
bool is_port(std::string_view text) { return std::all_of(text.begin(), text.end(), is_digit); }

/// How much of `rest`, which follows `://`, is a login.
std::size_t login_length(std::string_view scheme, std::string_view rest) {
  rest = rest.substr(0, rest.find_first_of(" \t\r\n"));
  std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  const std::size_t colon = authority.find(':');
  const bool host = authority.find('@') != std::string_view::npos || colon == authority.npos ||
                    authority.starts_with('[') || is_port(authority.substr(colon + 1));
  if (!host) authority = rest;
  const std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) return 0;
  const bool password = authority.substr(0, at).find(':') != std::string_view::npos;
  return scheme.ends_with("ssh") && !password ? 0 : at;
}

}  // namespace

std::vector<TextSpan> find_logins(std::string_view text) {
  std::vector<TextSpan> found;
  for (std::size_t at = text.find(kScheme); at != std::string_view::npos;
       at = text.find(kScheme, at)) {
    const std::string_view scheme = text.substr(0, at);
    at += kScheme.size();
    const std::size_t size = login_length(scheme, text.substr(at));
    if (size > 0) found.push_back({at, size});
    at += size;
  }
  return found;
}

TextSpan find_address(std::string_view text) {
  for (std::size_t at = text.find(kScheme); at != std::string_view::npos;
       at = text.find(kScheme, at + 1)) {
    std::size_t start = at;
    while (start > 0 && is_lower(text[start - 1])) --start;
    const std::size_t end = std::min(text.find_first_of(" )`'\",", at), text.size());
    if (start < at && end > at + kScheme.size()) return {start, end - start};
  }
  return {};
}

std::string with_display_url(std::string text) {
  const TextSpan address = find_address(text);
  if (address.size == 0) return text;
  const std::string shown = display_url(std::string_view(text).substr(address.start, address.size));
  return text.replace(address.start, address.size, shown);
}

std::string without_logins(std::string_view text) {
  std::string out;
  std::size_t done = 0;
  for (const TextSpan& login : find_logins(text)) {
    out += text.substr(done, login.start - done);
    out += kHiddenLogin;
    done = login.start + login.size;
  }
  out += text.substr(done);
  return out;
}

}  // namespace mlenv
