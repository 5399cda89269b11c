#include "runner/node/curl_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace mlenv::job {
namespace {

constexpr std::size_t kMostHead = std::size_t{64} << 10U;

/// In curl's configuration file (curl(1), `--config`). Line ends would begin another option.
std::string curl_quoted(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    if (c != '\n' && c != '\r' && c != '\0') all += c;
  }
  return all + '"';
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

/// `HTTP/1.1 206 Partial Content`; 0: it is none.
unsigned status_of(std::string_view line) {
  if (!line.starts_with("HTTP/")) return 0;
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return 0;
  const auto status = leading_number(line.substr(blank + 1));
  return status && *status < 1000 ? static_cast<unsigned>(*status) : 0;
}

/// The tunnel's own answer has a head of its own, as that of `100 Continue` has.
bool comes_before_another(unsigned status, std::string_view line) {
  return status < 200 ||
         (status == 200 && to_lower(line).find("connection established") != std::string::npos);
}

AnswerHead parse_head(std::string_view text) {
  AnswerHead head;
  std::size_t at = text.find('\n');
  head.status = status_of(trim(text.substr(0, at)));
  while (at != std::string_view::npos && at + 1 < text.size()) {
    const std::size_t end = text.find('\n', at + 1);
    const std::string_view line = text.substr(at + 1, end - at - 1);
    at = end;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string name = to_lower(line.substr(0, colon));
    const std::string_view value = trim(line.substr(colon + 1));
    if (name == "location") head.location = value;
    if (name == "content-range" && value.starts_with("bytes ")) {
      head.from = leading_number(value.substr(6));
    }
  }
  return head;
}

struct UrlParts {
  std::string scheme;
  std::string host;
  std::string port;
  std::string_view rest;  ///< path and query
};

/// A host of other characters than these might be another one for curl than for us.
bool is_plain_host(std::string_view host) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789.-_[]:";
  return !host.empty() && host.find_first_not_of(kPlain) == std::string_view::npos;
}

std::optional<UrlParts> url_parts(std::string_view url) {
  const std::size_t mark = url.find("://");
  if (mark == std::string_view::npos) return std::nullopt;
  UrlParts parts;
  parts.scheme = to_lower(url.substr(0, mark));
  if (parts.scheme != "http" && parts.scheme != "https") return std::nullopt;
  const std::string_view after = url.substr(mark + 3);
  const std::size_t end = std::min(after.find_first_of("/?#"), after.size());
  const std::string place = to_lower(after.substr(0, end));
  parts.rest = after.substr(end);
  const std::size_t bracket = place.find(']');
  const std::size_t colon = place.find(':', bracket == std::string::npos ? 0 : bracket);
  parts.host = place.substr(0, colon);
  parts.port = parts.scheme == "https" ? "443" : "80";
  if (colon != std::string::npos && colon + 1 < place.size()) parts.port = place.substr(colon + 1);
  const bool digits = parts.port.find_first_not_of("0123456789") == std::string::npos;
  const bool clean = url.find_first_of("\\ \t\r\n") == std::string_view::npos;
  if (!digits || !clean || !is_plain_host(parts.host)) return std::nullopt;
  return parts;
}

}  // namespace

std::string render_curl_config(const CurlRequest& request) {
  // What ends it: no connection for so many seconds; fewer bytes in each, over so many.
  constexpr int kConnecting = 20;
  constexpr int kLeastRate = 1000;
  constexpr int kSlowFor = 60;
  std::string text = "url = " + curl_quoted(request.url) + "\n";
  if (!request.authorization.empty()) {
    text += "header = " + curl_quoted("Authorization: " + request.authorization) + "\n";
  }
  if (request.any_certificate) text += "insecure\n";
  text += fmt::format("range = \"{}-{}\"\n", request.first, request.last);
  text += "silent\nshow-error\ninclude\nno-buffer\ngloboff\nproto = \"=http,https\"\n";
  // A proxy's answer to CONNECT: some say no more than `200 OK`, which would be taken for the
  // registry's. Before 7.54 curl passes over the word, without failing.
  text += "suppress-connect-headers\n";
  text += fmt::format("connect-timeout = {}\nspeed-limit = {}\nspeed-time = {}\n", kConnecting,
                      kLeastRate, kSlowFor);
  return text + "user-agent = \"mlenv\"\n";
}

std::optional<AnswerHead> AnswerReader::take(std::string_view& bytes) {
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find('\n'), bytes.size() - 1) + 1;
    const std::string_view line = bytes.substr(0, end);
    head_ += line;
    bytes.remove_prefix(end);
    const bool over = head_.ends_with("\n\r\n") || head_.ends_with("\n\n");
    if (head_.size() > kMostHead ||
        !std::string_view(head_).starts_with(std::string_view("HTTP/").substr(0, head_.size()))) {
      throw failure("bad-stream", "what came is no answer of HTTP");
    }
    if (!over) continue;
    AnswerHead head = parse_head(head_);
    const std::string first = head_.substr(0, head_.find('\n'));
    head_.clear();
    if (head.status == 0) throw failure("bad-stream", "what came is no answer of HTTP");
    if (!comes_before_another(head.status, first)) return head;
  }
  return std::nullopt;
}

std::optional<std::string> redirected(std::string_view url, std::string_view location) {
  const auto from = url_parts(url);
  if (!from || location.empty()) return std::nullopt;
  std::string next(location);
  if (location.starts_with("//")) {
    next = from->scheme + ":" + next;
  } else if (location.starts_with("/")) {
    next = from->scheme + "://" + from->host + ":" + from->port + next;
  }
  const auto to = url_parts(next);
  if (!to || (from->scheme == "https" && to->scheme == "http")) return std::nullopt;
  return next;
}

bool same_origin_url(std::string_view a, std::string_view b) {
  const auto one = url_parts(a);
  const auto other = url_parts(b);
  return one && other && one->scheme == other->scheme && one->host == other->host &&
         one->port == other->port;
}

std::string shown_url(std::string_view url) {
  const auto parts = url_parts(url);
  if (!parts) return "a malformed URL";
  const std::string_view rest = parts->rest;
  return fmt::format("{}://{}:{}{}", parts->scheme, parts->host, parts->port,
                     rest.substr(0, rest.find_first_of("?#")));
}

bool may_come_by_status(unsigned status) { return status == 408 || status == 429 || status >= 500; }

bool may_come_by_exit(int code) {
  // libcurl-errors(3): a URL that is none, certificates, ciphers. Not what a busy network does,
  // too: names that are not resolved (6), a TLS handshake that breaks off (35).
  constexpr std::array<int, 10> kNever = {1, 2, 3, 4, 53, 54, 58, 59, 60, 77};
  return std::find(kNever.begin(), kNever.end(), code) == kNever.end();
}

}  // namespace mlenv::job
