#include "base/http_retry.hpp"

#include <algorithm>
#include <array>
#include <random>

#include "base/log.hpp"
#include "base/login_policy.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace http {
namespace {

constexpr int kTriesToConnect = 3;
constexpr int kTriesWhenSlow = 2;
constexpr std::chrono::milliseconds kLongestBackoff{15'000};
constexpr std::size_t kExcerptBytes = 200;

/// Between half and all of `pause`, so that many clients do not come back at once.
std::chrono::milliseconds jittered(std::chrono::milliseconds pause) {
  thread_local std::minstd_rand random{std::random_device{}()};
  std::uniform_int_distribution<std::int64_t> part{pause.count() / 2, pause.count()};
  return std::chrono::milliseconds{part(random)};
}

std::string_view reason_phrase(long status) {
  constexpr std::array<std::pair<long, std::string_view>, 15> kPhrases{{
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {416, "Range Not Satisfiable"},
      {429, "Too Many Requests"},
      {500, "Internal Server Error"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
  }};
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return "an unexpected status";
}

/// First line of a plain-text or JSON answer; HTML pages say nothing to a person in a terminal.
std::string excerpt(const HttpResponse& response) {
  const std::string type = response.header("content-type").value_or("");
  if (!type.starts_with("text/plain") && type.find("json") == std::string::npos) return {};
  std::string line = response.body.substr(0, response.body.find_first_of("\r\n"));
  if (line.size() > kExcerptBytes) line = line.substr(0, kExcerptBytes) + "…";
  const auto printable = [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; };
  return std::all_of(line.begin(), line.end(), printable) ? line : std::string{};
}

}  // namespace

void Timer::wait(const HttpOptions& options, std::chrono::milliseconds pause) {
  if (options.pause) return options.pause(pause);
  const auto deadline = std::chrono::steady_clock::now() + pause;
  std::unique_lock lock{mutex_};
  never_.wait_until(lock, deadline, [&] { return std::chrono::steady_clock::now() >= deadline; });
}

bool is_transient(long status) {
  return status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504);
}

bool Attempts::another(const Outcome& outcome) {
  using Sort = Broken::Sort;
  const auto is = [&](Sort sort) { return outcome.broken && outcome.broken->sort == sort; };
  const bool transient = outcome.broken
                             ? is(Sort::interrupted) || is(Sort::unreachable) || is(Sort::slow)
                             : is_transient(outcome.response.status);
  if (!transient) return false;
  int tries = options_.tries;
  if (is(Sort::unreachable)) tries = std::min(tries, kTriesToConnect);
  if (is(Sort::slow)) tries = std::min(tries, kTriesWhenSlow);
  ++failed_;
  if (!allowed_ || failed_ >= tries) return false;
  std::chrono::milliseconds pause = std::min(
      kLongestBackoff, options_.first_pause * (std::int64_t{1} << std::min(failed_ - 1, 16)));
  pause = jittered(pause);
  if (outcome.retry_after) {
    if (*outcome.retry_after > options_.longest_pause) return false;
    pause = std::max<std::chrono::milliseconds>(pause, *outcome.retry_after);
  }
  log::debug("trying again in {} ms", pause.count());
  timer_.wait(options_, pause);
  return true;
}

std::string Attempts::headline(std::string_view url) const {
  const std::string where = display_url(url);
  if (failed_ <= 1) return fmt::format("no whole answer from `{}`", where);
  return fmt::format("no whole answer from `{}` after {} tries", where, failed_);
}

Error status_error(const HttpResponse& response, std::string_view url) {
  Error error = failure("http-status", "`{}` answered {} {}", display_url(url), response.status,
                        reason_phrase(response.status));
  if (const std::string words = excerpt(response); !words.empty()) error.because(words);
  if (response.no_login.empty()) return error;
  error.because(response.no_login);
  if (response.status != 401) error.hint(std::string(kHowToBeAsked));
  return error;
}

}  // namespace http

namespace {

constexpr int kMostRedirects = 10;

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void drop_credentials(HttpHeaders& headers) {
  std::erase_if(headers, [](const auto& header) {
    const std::string name = to_lower(header.first);
    return name == "authorization" || name == "cookie";
  });
}

/// 303 always becomes GET; 301 and 302 do for POST, as every client has it (RFC 9110 §15.4.2).
void change_method(http::Exchange& exchange, long status) {
  const bool to_get = status == 303 ? exchange.method != "HEAD"
                                    : (status == 301 || status == 302) && exchange.method == "POST";
  if (!to_get) return;
  exchange.method = "GET";
  exchange.body = nullptr;
  exchange.body_bytes = 0;
}

http::Exchange first_exchange(const HttpRequest& request, const HttpOptions& options) {
  const auto or_else = [](std::chrono::milliseconds own, std::chrono::milliseconds usual) {
    return own.count() > 0 ? own : usual;
  };
  http::Exchange exchange;
  exchange.method = request.method;
  exchange.url = http::parse_url(request.url);
  exchange.headers = request.headers;
  exchange.body = request.body;
  exchange.body_bytes = request.body_bytes;
  exchange.answer_limit = request.answer_limit;
  exchange.connect_timeout = or_else(request.connect_timeout, options.connect_timeout);
  exchange.stall_timeout = or_else(request.stall_timeout, options.stall_timeout);
  exchange.least_rate = options.least_rate;
  const std::uint64_t rate = std::max<std::uint64_t>(1, options.answer_rate);
  exchange.answer_timeout =
      exchange.stall_timeout + std::chrono::milliseconds{request.answer_limit * 1000 / rate};
  return exchange;
}

bool has_authorization(const HttpHeaders& headers) {
  return std::any_of(headers.begin(), headers.end(),
                     [](const auto& header) { return to_lower(header.first) == "authorization"; });
}

/// Basic (RFC 7617), among whatever else is offered.
bool wants_basic(const HttpResponse& refusal) {
  return std::any_of(refusal.headers.begin(), refusal.headers.end(), [](const auto& header) {
    const std::string value = to_lower(header.second);
    return header.first == "www-authenticate" &&
           (value.starts_with("basic") || value.find(", basic") != std::string::npos);
  });
}

}  // namespace

std::optional<NetrcLogin> Http::State::netrc_login(const http::Url& to) {
  const std::lock_guard lock{netrc_mutex_};
  if (!netrc_) {
    const std::string path = options.netrc.empty() ? http::environment_netrc() : options.netrc;
    std::optional<std::string> text;
    try {
      if (!path.empty()) text = read_small_file_if_exists(path, size_limit::kNetrc);
    } catch (const Error& error) {
      if (error.code() != "permission") throw;  // one that may not be read is none
    }
    netrc_ = std::move(text).value_or("");
  }
  return find_netrc_login(*netrc_, to);
}

bool Http::State::was_challenged(const http::Url& to) {
  const std::lock_guard lock{netrc_mutex_};
  return challenged_.contains(origin_of(to));
}

bool Http::State::answer_challenge(http::Exchange& exchange, const http::Url& asked,
                                   HttpResponse& refusal) {
  const http::Url& to = exchange.url;
  // User-info stands in an address that names the scheme, so that loopback is asked for as it is.
  NetrcLogin login{login_owner(to), to.user, to.password};
  LoginRequest request{to, asked, wants_basic(refusal), /*plain_http_allowed=*/true};
  if (to.user.empty()) {
    request.plain_http_allowed = false;
    std::optional<NetrcLogin> known = netrc_login(to);
    if (!known) {
      refusal.no_login = fmt::format("`~/.netrc` has no login for `{}`{}", to.host,
                                     to.scheme == "https" ? "" : ", as none goes over plain HTTP");
      return false;
    }
    login = *std::move(known);
  }
  refusal.no_login = login_refusal(login.owner, request);
  if (!refusal.no_login.empty()) return false;
  exchange.login = http::BasicLogin{login.user, login.password};
  const std::lock_guard lock{netrc_mutex_};
  challenged_.insert(origin_of(to));
  return true;
}

void Http::State::tell_held_back(const http::Exchange& exchange, HttpResponse& refusal) {
  const http::Url& to = exchange.url;
  const bool in_address = !to.user.empty();
  if (!in_address && !netrc_login(to)) return;
  refusal.no_login =
      fmt::format("{} has a login for `{}`, which was held back: the server did not ask for one",
                  in_address ? "the address" : "`~/.netrc`", to.host);
}

http::Outcome Http::State::follow(const HttpRequest& request,
                                  const std::function<Sink*(const HttpResponse&)>& route,
                                  bool may_leave_tls) {
  http::Exchange exchange = first_exchange(request, options);
  exchange.route = route;
  const http::Url asked = exchange.url;
  bool answered = !request.machine_login || has_authorization(exchange.headers);
  if (!answered && was_challenged(asked)) {
    HttpResponse before;
    before.headers = {{"www-authenticate", "Basic"}};
    answered = answer_challenge(exchange, asked, before);
  }
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    http::Outcome outcome = connections.perform(exchange);
    if (!answered && !outcome.broken && outcome.response.status == 401) {
      answered = true;
      if (answer_challenge(exchange, asked, outcome.response)) {
        outcome = connections.perform(exchange);
      }
    }
    const bool hidden = outcome.response.status == 403 || outcome.response.status == 404;
    if (!answered && !outcome.broken && hidden) tell_held_back(exchange, outcome.response);
    if (outcome.broken || !request.follow_redirects || !outcome.location ||
        !is_redirect(outcome.response.status)) {
      return outcome;
    }
    http::Url next = http::resolve_url(exchange.url, *outcome.location);
    if (exchange.url.scheme == "https" && next.scheme == "http" && !may_leave_tls) {
      throw failure("network", "`{}` redirects to `{}`, which is not encrypted",
                    display_url(request.url), display_url(next.text));
    }
    if (!http::same_origin(exchange.url, next)) {
      drop_credentials(exchange.headers);
      exchange.login.reset();
    }
    change_method(exchange, outcome.response.status);
    exchange.url = std::move(next);
  }
  throw failure("network", "`{}` redirects more than {} times", display_url(request.url),
                kMostRedirects);
}

}  // namespace mlenv
