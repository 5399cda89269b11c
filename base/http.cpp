#include "base/http.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <random>

#include "base/error.hpp"
#include "base/http_retry.hpp"
#include "base/http_transfer.hpp"

namespace mlenv {

using http::Outcome;

std::optional<std::string> HttpResponse::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key == name) return value;
  }
  return std::nullopt;
}

Http::Http(HttpOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Http::~Http() = default;

void Http::set_tls(std::string_view url, const HostTls& tls) {
  state_->connections.set_tls(http::parse_url(url), tls);
}

HttpResponse Http::send(const HttpRequest& given) {
  std::optional<HttpRequest> mended;
  http::Attempts attempts{state_->options, state_->timer, given.retry};
  while (true) {
    const HttpRequest& request = mended ? *mended : given;
    Outcome outcome = state_->follow(request, nullptr);
    if (attempts.another(outcome)) {
      if (!given.mend) continue;
      if (!mended) mended = given;
      if (given.mend(*mended)) attempts.forgive();
      continue;
    }
    if (!outcome.broken) return std::move(outcome.response);
    throw http::broken_error(*outcome.broken, attempts.headline(request.url));
  }
}

void Http::stream(const HttpRequest& request, Sink& sink) {
  bool begun = false;
  const auto route = [&](const HttpResponse&) {
    begun = true;
    return &sink;
  };
  http::Attempts attempts{state_->options, state_->timer, request.retry};
  while (true) {
    const Outcome outcome = state_->follow(request, route);
    if (!begun && attempts.another(outcome)) continue;
    if (outcome.broken) throw http::broken_error(*outcome.broken, attempts.headline(request.url));
    if (outcome.response.status / 100 != 2) throw http::status_error(outcome.response, request.url);
    return;
  }
}

}  // namespace mlenv
