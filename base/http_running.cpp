#include "base/http_running.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/text.hpp"

namespace mlenv::http {
namespace {

/// What Content-Length promises; 0 where it says nothing.
std::uint64_t content_length_or_zero(const HttpResponse& response) {
  const std::string text = response.header("content-length").value_or("");
  std::uint64_t length = 0;
  std::from_chars(text.data(), text.data() + text.size(), length);
  return length;
}

}  // namespace

void Running::configure(CURL* curl) {
  curl_easy_setopt(curl, CURLOPT_URL, exchange_.url.text.c_str());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, reason.data());
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Running::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Running::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Running::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, this);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(exchange_.connect_timeout.count()));
  if (exchange_.login) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, static_cast<long>(CURLAUTH_BASIC));
    curl_easy_setopt(curl, CURLOPT_USERNAME, exchange_.login->user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, exchange_.login->password.c_str());
  }
  // A proxy cannot reach our own loopback.
  if (is_loopback(exchange_.url.host)) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  configure_body(curl);
  for (const auto& [name, value] : exchange_.headers) {
    const std::string line = value.empty() ? name + ";" : fmt::format("{}: {}", name, value);
    curl_slist* const grown = curl_slist_append(headers.get(), line.c_str());
    if (grown == nullptr) throw Error{Kind::internal, "network", "out of memory for headers"};
    static_cast<void>(headers.release());
    headers.reset(grown);
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
}

void Running::configure_body(CURL* curl) {
  if (exchange_.body) {
    start_body();
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(exchange_.body_bytes));
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, &Running::on_upload);
    curl_easy_setopt(curl, CURLOPT_READDATA, this);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, &Running::on_seek);
    curl_easy_setopt(curl, CURLOPT_SEEKDATA, this);
  } else if (exchange_.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (exchange_.method == "POST" || exchange_.method == "PUT" ||
             exchange_.method == "PATCH") {
    // Says Content-Length: 0, which some servers insist on (RFC 9110 §8.6).
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, 0L);
  }
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, exchange_.method.c_str());
}

void Running::take_header(std::string_view line) {
  HttpResponse& response = outcome.response;
  head_bytes_ += line.size();
  if (head_bytes_ > size_limit::kAnswerHead) {
    throw failure("too-large", "the head of the answer of `{}` is longer than {} bytes",
                  display_url(exchange_.url.text), size_limit::kAnswerHead);
  }
  if (trim(line).empty() && response.status >= 200) {
    head_done_ = true;
    const bool kept = response.status / 100 == 2 && !exchange_.route;
    if (kept && exchange_.method != "HEAD") refuse_long_answer(content_length_or_zero(response));
  }
  if (line.starts_with("HTTP/")) {  // also after 100 Continue: what came before does not count
    response.headers.clear();
    response.status = 0;
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    std::from_chars(line.data() + space + 1, line.data() + line.size(), response.status);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  response.headers.emplace_back(to_lower(trim(line.substr(0, colon))),
                                trim(line.substr(colon + 1)));
}

void Running::take_body(ByteView data) {
  const Clock::time_point began = Clock::now();
  const bool success = outcome.response.status / 100 == 2;
  received_ += data.size();
  if (!routed_) {
    routed_ = true;
    if (success && exchange_.route) sink_ = exchange_.route(outcome.response);
  }
  if (sink_ != nullptr) {
    sink_->write(data);
    note_own_work(began);
    return;
  }
  std::string& body = outcome.response.body;
  if (!success) {  // only for a message
    constexpr std::size_t kMost = size_limit::kErrorBody;
    body += as_text(data.first(std::min(data.size(), kMost - body.size())));
    enough = body.size() == kMost;
    return;
  }
  refuse_long_answer(body.size() + data.size());
  body += as_text(data);
}

void Running::refuse_long_answer(std::uint64_t bytes) const {
  if (bytes <= exchange_.answer_limit) return;
  throw failure("too-large", "the answer of `{}` is longer than {} bytes",
                display_url(exchange_.url.text), exchange_.answer_limit);
}

std::size_t Running::give_body(ByteSpan out) {
  const Clock::time_point began = Clock::now();
  const std::size_t count = body_->read(out);
  given_ += count;
  note_own_work(began);
  // Otherwise both sides would wait for each other.
  if (count == 0 && given_ < exchange_.body_bytes) {
    throw failure("truncated", "what is sent to `{}` ends after {} of {} bytes",
                  display_url(exchange_.url.text), given_, exchange_.body_bytes);
  }
  return count;
}

/// libcurl calls this at least once a second. Time spent in our own callbacks does not count: bytes
/// move there.
bool Running::watch(curl_off_t sent) {
  const Clock::time_point now = Clock::now();
  const auto sent_bytes = static_cast<std::uint64_t>(sent);
  const std::uint64_t bytes = sent_bytes + received_;
  if (bytes != seen_bytes_) {
    seen_bytes_ = bytes;
    seen_at_ = now;
  }
  const bool sending = exchange_.body && sent_bytes < exchange_.body_bytes;
  if (!sending && !sent_whole_) {
    sent_whole_ = true;
    asked_at_ = now;
  }
  stalled = now - seen_at_ >= exchange_.stall_timeout;
  // While a server thinks, no byte moves: that is for the stall timeout.
  if (sending || head_done_) {
    watch_rate(now, bytes);
  } else {
    start_window(now, bytes);
  }
  const bool kept = !exchange_.route && exchange_.answer_timeout.count() > 0;
  late = kept && sent_whole_ && now - asked_at_ >= exchange_.answer_timeout;
  return !stalled && !slow && !late;
}

void Running::start_window(Clock::time_point now, std::uint64_t bytes) {
  window_at_ = now;
  window_own_work_ = own_work_;
  window_bytes_ = bytes;
}

void Running::watch_rate(Clock::time_point now, std::uint64_t bytes) {
  const Clock::duration taken = now - window_at_ - (own_work_ - window_own_work_);
  // Where nothing moves at all the stall timeout has the word.
  const bool still = now - seen_at_ >= exchange_.stall_timeout / 2;
  if (taken < exchange_.stall_timeout || still) return;
  const double seconds = std::chrono::duration<double>(taken).count();
  slow = static_cast<double>(bytes - window_bytes_) <
         static_cast<double>(exchange_.least_rate) * seconds;
  start_window(now, bytes);
}

}  // namespace mlenv::http
