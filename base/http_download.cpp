// Downloads that survive breaks. File and piece hold `received_` bytes, hashed in that order; a
// break is followed by a request for the rest, a doubt about those bytes by a new start.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/http.hpp"
#include "base/http_retry.hpp"
#include "base/log.hpp"
#include "base/size_limits.hpp"

namespace mlenv {
namespace {

// libcurl gives 16 KiB at a time; hashing and writing are cheaper in larger pieces.
constexpr std::size_t kGivenBytes = std::size_t{16} << 10U;
constexpr std::size_t kPieceBytes = std::size_t{256} << 10U;
// A try that brings so much more than any before it does not count as failed.
constexpr std::uint64_t kProgressBytes = std::uint64_t{1} << 20;

/// Thrown inside a transfer to end it; never leaves this file.
struct StartAgain {
  std::string why;
};

/// `bytes 100-199/200` → 100 (RFC 9110 §14.4).
std::optional<std::uint64_t> range_start(const HttpResponse& head) {
  const std::string text = head.header("content-range").value_or("");
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  std::uint64_t start = 0;
  const auto result = std::from_chars(text.data() + kUnit.size(), text.data() + text.size(), start);
  if (result.ec != std::errc{}) return std::nullopt;
  return start;
}

/// What If-Range may carry (RFC 9110 §13.1.5): a strong entity tag, else the date.
std::string validator_of(const HttpResponse& head) {
  const std::string tag = head.header("etag").value_or("");
  if (!tag.empty()) return tag.starts_with("W/") ? std::string{} : tag;
  return head.header("last-modified").value_or("");
}

/// What Content-Length promises.
std::optional<std::uint64_t> content_length(const HttpResponse& head) {
  const std::string text = head.header("content-length").value_or("");
  std::uint64_t length = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), length);
  if (text.empty() || result.ec != std::errc{}) return std::nullopt;
  return length;
}

class Fetch final : public Sink {
 public:
  Fetch(const Download& what, int file, const std::function<void(std::uint64_t)>& advance,
        HashExchange& hashes)
      : what_(what), headers_(what.headers), file_(file), advance_(advance), hash_(hashes) {}

  HttpRequest next_request() const;
  /// Decides with the head of a 2xx answer whether the body continues what is there.
  Sink* route(const HttpResponse& head);
  void write(ByteView data) override;
  void refuse_long_answer(const HttpResponse& head) const;
  Error too_long() const;
  void start_again();
  /// True once after each time that at least `kProgressBytes` more than ever before are there.
  bool progressed();
  /// Before a request for the rest: what could not be proved to belong to it is dropped.
  void prepare_to_continue() {
    if (!what_.digest && validator_.empty() && received_ > 0) start_again();
  }
  bool is_short() const { return what_.size_bytes && received_ < *what_.size_bytes; }
  bool is_full() const { return what_.size_bytes && received_ == *what_.size_bytes; }
  /// nullopt: the file is what was promised. Else what is wrong with it.
  std::optional<std::string> check();
  bool authorize(const HttpResponse& refusal) {
    return what_.authorize && what_.authorize(refusal, headers_);
  }
  std::uint64_t received() const { return received_; }
  bool fresh = false;  ///< asks caches on the way to stand aside

 private:
  void flush();

  const Download& what_;
  HttpHeaders headers_;
  int file_;
  Bytes piece_;  ///< received, not written yet
  const std::function<void(std::uint64_t)>& advance_;
  HashExchange::Stream hash_;
  std::uint64_t received_ = 0;
  std::uint64_t furthest_ = 0;
  std::uint64_t noted_ = 0;
  std::string validator_;
};

HttpRequest Fetch::next_request() const {
  HttpRequest request;
  request.url = what_.url;
  request.headers = headers_;
  request.machine_login = what_.machine_login;
  if (received_ > 0) {
    request.headers.emplace_back("Range", fmt::format("bytes={}-", received_));
    // With a promised digest the bytes prove themselves, whichever mirror they come from.
    if (!what_.digest) request.headers.emplace_back("If-Range", validator_);
  }
  if (fresh) request.headers.emplace_back("Cache-Control", "no-cache");
  return request;
}

Sink* Fetch::route(const HttpResponse& head) {
  refuse_long_answer(head);
  if (head.status == 206 && received_ > 0) {
    if (range_start(head) != received_) throw StartAgain{"the server sent another range"};
    return this;
  }
  // The whole from its start: the server knows no ranges, or the resource has changed.
  if (received_ > 0) start_again();
  validator_ = validator_of(head);
  return this;
}

/// Before a byte of it is taken.
void Fetch::refuse_long_answer(const HttpResponse& head) const {
  const std::uint64_t told = content_length(head).value_or(0);
  const std::uint64_t whole = head.status == 206 ? received_ + told : told;
  if (what_.size_bytes && whole > *what_.size_bytes) {
    throw StartAgain{fmt::format("its {} bytes are longer than the {} bytes promised", whole,
                                 *what_.size_bytes)};
  }
  if (!what_.size_bytes && whole > size_limit::kUntoldDownload) throw too_long();
}

Error Fetch::too_long() const {
  return failure("too-large", "`{}` is longer than {} bytes", display_url(what_.url),
                 size_limit::kUntoldDownload);
}

void Fetch::write(ByteView data) {
  if (!what_.size_bytes && received_ + data.size() > size_limit::kUntoldDownload) throw too_long();
  if (what_.size_bytes && received_ + data.size() > *what_.size_bytes) {
    throw StartAgain{fmt::format("it is longer than the {} bytes promised", *what_.size_bytes)};
  }
  piece_.insert(piece_.end(), data.begin(), data.end());
  received_ += data.size();
  if (piece_.size() >= kPieceBytes) flush();
  if (received_ <= furthest_) return;
  if (advance_) advance_(received_ - furthest_);
  furthest_ = received_;
}

void Fetch::flush() {
  write_all(file_, piece_);
  if (!what_.digest) return piece_.clear();
  hash_.write(std::move(piece_));
  piece_ = hash_.buffer();
  piece_.reserve(kPieceBytes + kGivenBytes);
}

void Fetch::start_again() {
  piece_.clear();
  if (::ftruncate(file_, 0) != 0 || ::lseek(file_, 0, SEEK_SET) < 0) {
    throw os_error(errno, "cannot start the download of `{}` again", display_url(what_.url));
  }
  hash_.start_again();
  received_ = 0;
  validator_.clear();
}

bool Fetch::progressed() {
  if (furthest_ < noted_ + kProgressBytes) return false;
  noted_ = furthest_;
  return true;
}

std::optional<std::string> Fetch::check() {
  flush();
  if (what_.size_bytes && received_ != *what_.size_bytes) {
    return fmt::format("needs {} bytes, found {}", *what_.size_bytes, received_);
  }
  if (!what_.digest) return std::nullopt;
  const Digest found = hash_.finish();
  hash_.start_again();
  if (found == *what_.digest) return std::nullopt;
  return fmt::format("needs {}, found {}", what_.digest->str(), found.str());
}

/// The answer ended as if it were whole, but only its connection's end says so (RFC 9112 §6.3).
bool may_be_cut(const HttpResponse& response) {
  return !response.header("content-length") && !response.header("transfer-encoding");
}

/// Carries one download over its tries.
class Downloading {
 public:
  Downloading(Http::State& state, const Download& what, Fetch& fetch)
      : state_(state),
        what_(what),
        fetch_(fetch),
        attempts_(state.options, state.timer, /*allowed=*/true) {}

  void run() {
    bool done = false;
    while (!done) {
      try {
        done = step();
      } catch (const StartAgain& again) {
        doubt(again.why);
      }
    }
  }

 private:
  bool step();
  void again_or_throw(const http::Outcome& outcome);
  /// What is there is wrong: tried once more from the start.
  void doubt(const std::string& why);

  Http::State& state_;
  const Download& what_;
  Fetch& fetch_;
  http::Attempts attempts_;
  bool doubted_ = false;
};

bool Downloading::step() {
  // Bytes with a promised digest may come over any road, unless nobody else is to see them.
  http::Outcome outcome = state_.follow(
      fetch_.next_request(), [&](const HttpResponse& head) { return fetch_.route(head); },
      what_.digest.has_value() && !what_.keep_tls);
  if (fetch_.progressed()) attempts_.forgive();
  const bool success = outcome.response.status / 100 == 2;
  if (!outcome.broken && outcome.response.status == 401 && fetch_.authorize(outcome.response)) {
    return false;
  }
  const bool no_more = outcome.response.status == 416 && fetch_.received() > 0;
  if (outcome.broken ? !fetch_.is_full() : !success && !no_more) {
    again_or_throw(outcome);
    return false;
  }
  if (fetch_.is_short() && success && may_be_cut(outcome.response)) {
    outcome.broken = http::Broken{http::Broken::Sort::interrupted, "the answer ended early", {}};
    again_or_throw(outcome);
    return false;
  }
  const std::optional<std::string> wrong = fetch_.check();
  if (wrong) doubt(*wrong);
  return !wrong;
}

void Downloading::again_or_throw(const http::Outcome& outcome) {
  if (attempts_.another(outcome)) return fetch_.prepare_to_continue();
  if (outcome.broken) throw http::broken_error(*outcome.broken, attempts_.headline(what_.url));
  throw http::status_error(outcome.response, what_.url);
}

void Downloading::doubt(const std::string& why) {
  log::debug("{}: {}", display_url(what_.url), why);
  if (doubted_) {
    throw failure("digest-mismatch", "`{}` is not what was promised", display_url(what_.url))
        .because(why);
  }
  doubted_ = true;
  fetch_.start_again();
  fetch_.fresh = true;
}

}  // namespace

void Http::download(const Download& what, int file,
                    const std::function<void(std::uint64_t)>& advance) {
  Fetch fetch{what, file, advance, what.hashes != nullptr ? *what.hashes : state_->hashes};
  Downloading{*state_, what, fetch}.run();
}

}  // namespace mlenv
