// One blob's way into a registry (distribution-spec 1.1, "Pushing blobs"): POST opens a session,
// PATCH carries the bytes, PUT names the digest and ends it. After a break the session is asked how
// far it came and the rest is sent; a session that is lost, or that cannot say, gives way to a new
// one. Debian's docker-registry 2.8 loses every session that broke within a PATCH.
#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/size_limits.hpp"
#include "images/registry_state.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kSmallBlob = std::uint64_t{64} << 10;  // goes with the PUT
constexpr int kMostSessions = 5;
// A registry on object storage copies the whole blob before it answers.
constexpr std::chrono::minutes kLongestFinish{15};

/// Ends a session that cannot go on; never leaves this file.
struct SessionLost {
  std::string why;
};
/// All bytes are there though the answer was lost; never leaves this file.
struct AllThere {};

/// Tells how far reading went.
class SentCountingSource final : public Source {
 public:
  SentCountingSource(std::unique_ptr<Source> source, std::function<void(std::uint64_t)> count)
      : source_(std::move(source)), count_(std::move(count)) {}
  std::size_t read(ByteSpan out) override {
    const std::size_t amount = source_->read(out);
    count_(amount);
    return amount;
  }

 private:
  std::unique_ptr<Source> source_;
  std::function<void(std::uint64_t)> count_;
};

/// `0-99` → 100 bytes there. nullopt for what does not say: docker-registry writes `0-0` for both
/// no byte and one.
std::optional<std::uint64_t> bytes_there(const HttpResponse& response) {
  std::string text = response.header("range").value_or("");
  if (text.starts_with("bytes=")) text.erase(0, 6);
  if (!text.starts_with("0-")) return std::nullopt;
  std::uint64_t last = 0;
  const auto result = std::from_chars(text.data() + 2, text.data() + text.size(), last);
  if (result.ec != std::errc{} || last == 0) return std::nullopt;
  return last + 1;
}

}  // namespace

class Registry::Upload {
 public:
  using Open = std::function<std::unique_ptr<Source>(std::uint64_t)>;
  Upload(State& state, const Descriptor& blob, const Open& open,
         const std::function<void(std::uint64_t)>& advance)
      : state_(state), blob_(blob), open_(open), advance_(advance) {}

  /// One session from its beginning; throws SessionLost.
  void run() {
    start();
    try {
      if (blob_.size_bytes > kSmallBlob) send_bytes();
    } catch (const AllThere&) {
      offset_ = blob_.size_bytes;
    }
    finish();
  }

 private:
  void start();
  void send_bytes();
  void finish();
  /// The PATCH that carries what lies after `offset_`.
  HttpRequest patch();
  void set_body(HttpRequest& request);
  /// Asks the session how far it came.
  void synchronise();
  void move_to(const HttpResponse& response, const std::string& request_url);

  State& state_;
  const Descriptor& blob_;
  const Open& open_;
  const std::function<void(std::uint64_t)>& advance_;
  std::string location_;
  std::uint64_t offset_ = 0;    ///< bytes that the session has
  std::uint64_t furthest_ = 0;  ///< bytes that were told to `advance_`
};

void Registry::Upload::move_to(const HttpResponse& response, const std::string& request_url) {
  const std::optional<std::string> location = response.header("location");
  if (location) location_ = state_.resolve(request_url, *location);
}

void Registry::Upload::start() {
  HttpRequest request;
  request.method = "POST";
  request.url = state_.url("blobs/uploads/");
  const HttpResponse response = state_.call(request);
  if (response.status != 202) throw state_.refused(response, "start an upload");
  location_.clear();
  offset_ = 0;
  move_to(response, response.url);
  if (location_.empty()) {
    throw failure("registry", "`{}` started an upload without saying where", state_.where.host());
  }
}

void Registry::Upload::set_body(HttpRequest& request) {
  request.body_bytes = blob_.size_bytes - offset_;
  request.body = [this, from = offset_] {
    return std::make_unique<SentCountingSource>(open_(from),
                                                [this, at = from](std::uint64_t amount) mutable {
                                                  at += amount;
                                                  if (at <= furthest_) return;
                                                  if (advance_) advance_(at - furthest_);
                                                  furthest_ = at;
                                                });
  };
}

HttpRequest Registry::Upload::patch() {
  HttpRequest request;
  request.method = "PATCH";
  request.url = location_;
  request.stall_timeout = kLongestFinish;
  request.machine_login = false;
  request.answer_limit = size_limit::kManifest;
  request.headers = {{"Content-Type", "application/octet-stream"}};
  if (offset_ > 0) {
    request.headers.emplace_back("Content-Range",
                                 fmt::format("{}-{}", offset_, blob_.size_bytes - 1));
  }
  set_body(request);
  return request;
}

void Registry::Upload::synchronise() {
  HttpRequest request;
  request.url = location_;
  const HttpResponse response = state_.call(request);
  const std::optional<std::uint64_t> there = bytes_there(response);
  if (response.status / 100 != 2 || !there || *there > blob_.size_bytes) {
    throw SessionLost{registry_words(response)};
  }
  move_to(response, response.url);
  offset_ = *there;
  log::debug("upload of {} goes on at {}", blob_.digest.brief(), offset_);
  if (offset_ == blob_.size_bytes) throw AllThere{};
}

void Registry::Upload::send_bytes() {
  int renewals = 0;
  while (true) {
    HttpRequest request = patch();
    std::string used = state_.authorize(request.headers, request.url);
    request.mend = [&](HttpRequest& again) {
      const std::uint64_t before = offset_;
      synchronise();
      HttpRequest next = patch();
      used = state_.authorize(next.headers, next.url);
      again.url = next.url;
      again.headers = next.headers;
      again.body = next.body;
      again.body_bytes = next.body_bytes;
      return offset_ > before;
    };
    const HttpResponse response = state_.http.send(request);
    if (response.status / 100 == 2) {
      move_to(response, response.url);
      offset_ = blob_.size_bytes;
      return;
    }
    if (response.status == 401 && renewals < kMostRenewals && state_.renew(response, used)) {
      ++renewals;
      if (offset_ > 0) synchronise();
      continue;
    }
    if (response.status == 404 || response.status == 416) {
      throw SessionLost{registry_words(response)};
    }
    throw state_.refused(response, "accept a layer");
  }
}

void Registry::Upload::finish() {
  HttpRequest request;
  request.method = "PUT";
  request.url = location_ + (location_.find('?') == std::string::npos ? "?" : "&") +
                "digest=" + url_query_encode(blob_.digest.str());
  request.stall_timeout = kLongestFinish;
  if (offset_ < blob_.size_bytes) {
    request.headers = {{"Content-Type", "application/octet-stream"}};
    set_body(request);
  }
  const HttpResponse response = state_.call(request);
  if (response.status / 100 == 2) return;
  if (response.status == 404 || response.status == 416) throw SessionLost{registry_words(response)};
  if (registry_code(response) == "DIGEST_INVALID") {
    throw failure("digest-mismatch", "`{}` received other bytes than {} promises",
                  state_.where.host(), blob_.digest.str())
        .because(registry_words(response));
  }
  throw state_.refused(response, "accept a layer");
}

void Registry::upload_blob(const Descriptor& blob,
                           const std::function<std::unique_ptr<Source>(std::uint64_t offset)>& open,
                           const std::function<void(std::uint64_t)>& advance) {
  Upload upload{*state_, blob, open, advance};
  std::string why;
  for (int session = 0; session < kMostSessions; ++session) {
    try {
      return upload.run();
    } catch (const SessionLost& lost) {
      why = lost.why;
      log::debug("upload of {} starts anew: {}", blob.digest.brief(), why);
    }
    if (has_blob(blob.digest)) return;  // it was the answer that was lost
  }
  throw failure("registry", "`{}` lost the upload of {} {} times", state_->where.host(),
                blob.digest.brief(), kMostSessions)
      .because(why.empty() ? "it cannot say how many bytes it has" : why)
      .hint("run the same command again; layers that arrived whole are not sent twice");
}

}  // namespace mlenv
