#include "base/http_transfer.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <exception>

#include "base/files.hpp"
#include "base/handle.hpp"
#include "base/log.hpp"

namespace mlenv::http {
namespace {

using Easy = Owned<curl_easy_cleanup>::of<CURL>;
using HeaderList = Owned<curl_slist_free_all>::of<curl_slist>;
using Clock = std::chrono::steady_clock;

// libcurl's own maximum for receiving; a large one costs memory only while a transfer runs.
constexpr long kReceiveBytes = 512L << 10;
constexpr long kUploadBytes = 1L << 20;
constexpr std::size_t kIdleHandles = 32;
constexpr std::size_t kErrorBodyBytes = std::size_t{64} << 10;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

/// The state of one exchange while libcurl runs it. The callbacks are noexcept: what is thrown
/// inside is parked and rethrown by `Connections::perform`.
class Running {
 public:
  explicit Running(const Exchange& exchange) : exchange_(exchange) {
    outcome.response.url = exchange.url.text;
  }

  void configure(CURL* curl);

  Outcome outcome;
  std::exception_ptr thrown;
  bool stalled = false;
  std::array<char, CURL_ERROR_SIZE> reason{};
  HeaderList headers;

 private:
  static std::size_t on_header(char* data, std::size_t, std::size_t count, void* self) noexcept {
    return static_cast<Running*>(self)->guarded(count, std::size_t{0}, [&](Running& running) {
      running.take_header({data, count});
    });
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t count, void* self) noexcept {
    return static_cast<Running*>(self)->guarded(count, std::size_t{0}, [&](Running& running) {
      running.take_body(as_bytes({data, count}));
    });
  }
  static std::size_t on_upload(char* data, std::size_t, std::size_t room, void* self) noexcept {
    std::size_t given = 0;
    const bool fine = static_cast<Running*>(self)->guarded(true, false, [&](Running& running) {
      given = running.give_body(std::as_writable_bytes(std::span(data, room)));
    });
    return fine ? given : std::size_t{CURL_READFUNC_ABORT};
  }
  static int on_seek(void* self, curl_off_t offset, int origin) noexcept {
    if (offset != 0 || origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
    return static_cast<Running*>(self)->guarded(CURL_SEEKFUNC_OK, CURL_SEEKFUNC_FAIL,
                                                [](Running& running) { running.start_body(); });
  }
  static int on_progress(void* self, curl_off_t, curl_off_t received, curl_off_t,
                         curl_off_t sent) noexcept {
    return static_cast<Running*>(self)->watch(received + sent) ? 0 : 1;
  }

  template <typename Result, typename Work>
  Result guarded(Result fine, Result abort, const Work& work) noexcept {
    try {
      work(*this);
      return fine;
    } catch (...) {
      thrown = std::current_exception();
      return abort;
    }
  }

  void configure_body(CURL* curl);
  void take_header(std::string_view line);
  void take_body(ByteView data);
  std::size_t give_body(ByteSpan out);
  void start_body() {
    body_ = exchange_.body();
    given_ = 0;
  }
  bool watch(curl_off_t bytes);

  const Exchange& exchange_;
  std::unique_ptr<Source> body_;
  std::uint64_t given_ = 0;
  bool routed_ = false;
  Sink* sink_ = nullptr;
  curl_off_t seen_bytes_ = 0;
  Clock::time_point seen_at_ = Clock::now();
};

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
  if (!exchange_.url.user.empty()) {
    curl_easy_setopt(curl, CURLOPT_USERNAME, exchange_.url.user.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, exchange_.url.password.c_str());
  }
  // A proxy cannot reach our own loopback.
  if (is_loopback(exchange_.url.host)) curl_easy_setopt(curl, CURLOPT_PROXY, "");
  configure_body(curl);
  for (const auto& [name, value] : exchange_.headers) {
    const std::string line = value.empty() ? name + ";" : name + ": " + value;
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
  if (line.starts_with("HTTP/")) {  // also after 100 Continue: what came before does not count
    response.headers.clear();
    const std::size_t space = line.find(' ');
    response.status =
        space == std::string_view::npos ? 0 : std::atol(std::string(line.substr(space)).c_str());
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  response.headers.emplace_back(lower(trimmed(line.substr(0, colon))),
                                trimmed(line.substr(colon + 1)));
}

void Running::take_body(ByteView data) {
  const bool success = outcome.response.status / 100 == 2;
  if (!routed_) {
    routed_ = true;
    if (success && exchange_.route) sink_ = exchange_.route(outcome.response);
  }
  if (sink_ != nullptr) {
    sink_->write(data);
    return;
  }
  std::string& body = outcome.response.body;
  if (!success && exchange_.route) {  // only for a message
    body += as_text(data.first(std::min(data.size(), kErrorBodyBytes - body.size())));
    return;
  }
  if (body.size() + data.size() > exchange_.answer_limit) {
    throw failure("too-large", "the answer of `{}` is longer than {} bytes",
                  display_url(exchange_.url.text), exchange_.answer_limit);
  }
  body += as_text(data);
}

std::size_t Running::give_body(ByteSpan out) {
  const std::size_t count = body_->read(out);
  given_ += count;
  // Otherwise both sides would wait for each other.
  if (count == 0 && given_ < exchange_.body_bytes) {
    throw failure("truncated", "what is sent to `{}` ends after {} of {} bytes",
                  display_url(exchange_.url.text), given_, exchange_.body_bytes);
  }
  return count;
}

/// libcurl calls this at least once a second. Time spent in our own callbacks does not count: bytes
/// move there.
bool Running::watch(curl_off_t bytes) {
  const Clock::time_point now = Clock::now();
  if (bytes != seen_bytes_) {
    seen_bytes_ = bytes;
    seen_at_ = now;
  }
  stalled = now - seen_at_ >= exchange_.stall_timeout;
  return !stalled;
}

Broken::Sort sort_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
      return Broken::Sort::unreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
      return Broken::Sort::untrusted;
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_ABORTED_BY_CALLBACK:
    case CURLE_AGAIN:
      return Broken::Sort::interrupted;
    default:
      return Broken::Sort::hopeless;
  }
}

std::string hint_of(CURLcode code, const Url& url) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
      return "correct the proxy's name in HTTPS_PROXY or http_proxy";
    case CURLE_COULDNT_RESOLVE_HOST:
      return fmt::format(
          "check the name `{}`, and whether this machine needs a proxy (HTTPS_PROXY)", url.host);
    case CURLE_PEER_FAILED_VERIFICATION:
      return "when the server has a private certificate authority, name its certificate file in "
             "SSL_CERT_FILE";
    case CURLE_SSL_CACERT_BADFILE:
      return "correct the file name in CURL_CA_BUNDLE or SSL_CERT_FILE";
    default:
      return {};
  }
}

Broken describe(CURL* curl, CURLcode code, const Running& running, const Exchange& exchange) {
  long os_errno = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &os_errno);
  Broken broken;
  broken.sort = sort_of(code);
  broken.hint = hint_of(code, exchange.url);
  if (running.stalled) {
    broken.reason = fmt::format("no byte moved for {:.0f} seconds",
                                std::chrono::duration<double>(exchange.stall_timeout).count());
  } else {
    const std::string_view text{running.reason.data()};
    broken.reason = text.empty() ? std::string(curl_easy_strerror(code)) : std::string(text);
    if (code == CURLE_COULDNT_CONNECT && os_errno != 0) {
      broken.reason = broken.reason.substr(0, broken.reason.find(" after ")) + ": " +
                      errno_text(static_cast<int>(os_errno));
    }
  }
  while (broken.reason.ends_with('.') || broken.reason.ends_with('\n')) broken.reason.pop_back();
  return broken;
}

// The one place outside cli/settings that reads the environment: these variables belong to the
// machine, not to mlenv.
std::string environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
  return value == nullptr ? std::string{} : std::string{value};
}

}  // namespace

EnvironmentTrust environment_trust() {
  EnvironmentTrust trust;
  trust.file = environment("CURL_CA_BUNDLE");
  if (trust.file.empty()) {
    trust.file = environment("SSL_CERT_FILE");
    trust.folder = environment("SSL_CERT_DIR");
  }
  trust.netrc = environment("NETRC");
  return trust;
}

Error broken_error(const Broken& broken, std::string headline) {
  Error error{Kind::failed, broken.sort == Broken::Sort::untrusted ? "certificate" : "network",
              std::move(headline)};
  error.because(broken.reason);
  if (!broken.hint.empty()) error.hint(broken.hint);
  return error;
}

class Connections::Handle {
 public:
  explicit Handle(std::string to) : origin(std::move(to)), curl(curl_easy_init()) {
    if (!curl) throw Error{Kind::internal, "network", "cannot start libcurl"};
  }
  std::string origin;  ///< where its kept connection leads
  Easy curl;
};

Connections::Connections(const HttpOptions& options) : user_agent_(options.user_agent) {
  // Thread-safe and counted since libcurl 7.84; never cleaned up, like any library's own tables.
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) throw Error{Kind::internal, "network", "cannot start libcurl"};
  const EnvironmentTrust trust = environment_trust();
  trust_ = {trust.file, trust.folder, {}, options.verify_tls};
  netrc_ = trust.netrc;
  if (options.extra_ca_files.empty()) return;
  const char* const built_in = curl_version_info(CURLVERSION_NOW)->cainfo;
  const std::string usual = trust_.file.empty() && built_in != nullptr ? built_in : trust_.file;
  trust_.bundle = read_file_if_exists(usual).value_or("");
  for (const std::string& file : options.extra_ca_files) trust_.bundle += "\n" + read_file(file);
}

Connections::~Connections() = default;

Connections::Handle Connections::take(const std::string& origin) {
  const std::lock_guard lock{mutex_};
  // The newest with a connection to the same place, else the oldest.
  auto found = std::find_if(idle_.rbegin(), idle_.rend(),
                            [&](const Handle& handle) { return handle.origin == origin; });
  if (found == idle_.rend() && idle_.size() < kIdleHandles) return Handle{origin};
  auto chosen = found == idle_.rend() ? idle_.begin() : std::prev(found.base());
  Handle handle = std::move(*chosen);
  idle_.erase(chosen);
  handle.origin = origin;
  return handle;
}

bool Connections::put_back(Handle handle, bool reached) {
  const std::lock_guard lock{mutex_};
  if (reached) reached_.insert(handle.origin);
  const bool known = reached_.contains(handle.origin);
  if (idle_.size() < kIdleHandles) idle_.push_back(std::move(handle));
  return known;
}

void Connections::prepare(Handle& handle) const {
  CURL* const curl = handle.curl.get();
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, kReceiveBytes);
  curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBytes);
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, user_agent_.c_str());
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (!netrc_.empty()) curl_easy_setopt(curl, CURLOPT_NETRC_FILE, netrc_.c_str());
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, trust_.verify ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, trust_.verify ? 2L : 0L);
  if (!trust_.bundle.empty()) {
    // Copied, though the text stays: libcurl 7.88 takes a const blob but a mutable pointer in it.
    std::string text = trust_.bundle;
    curl_blob blob{text.data(), text.size(), CURL_BLOB_COPY};
    curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &blob);
  } else if (!trust_.file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, trust_.file.c_str());
  }
  if (!trust_.folder.empty()) curl_easy_setopt(curl, CURLOPT_CAPATH, trust_.folder.c_str());
}

Outcome Connections::perform(const Exchange& exchange) {
  const Clock::time_point start = Clock::now();
  Handle handle = take(exchange.url.scheme + "://" + exchange.url.host + ":" + exchange.url.port);
  CURL* const curl = handle.curl.get();
  prepare(handle);
  Running running{exchange};
  running.configure(curl);
  const CURLcode code = curl_easy_perform(curl);
  Outcome& outcome = running.outcome;
  if (code != CURLE_OK) {
    outcome.broken = describe(curl, code, running, exchange);
  } else {
    curl_off_t seconds = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds > 0) outcome.retry_after = std::chrono::seconds{seconds};
    outcome.location = outcome.response.header("location");
  }
  log::debug("{} {}: {} in {:.3f} s{}{}", exchange.method, display_url(exchange.url.text),
             outcome.response.status, std::chrono::duration<double>(Clock::now() - start).count(),
             outcome.broken ? ", " : "", outcome.broken ? outcome.broken->reason : "");
  // Forgets our pointers; connections and DNS answers stay.
  curl_easy_reset(curl);
  const bool known = put_back(std::move(handle), outcome.response.status > 0);
  if (known && outcome.broken && outcome.broken->sort == Broken::Sort::unreachable) {
    outcome.broken->sort = Broken::Sort::interrupted;
  }
  if (running.thrown) std::rethrow_exception(running.thrown);
  return std::move(running.outcome);
}

}  // namespace mlenv::http
