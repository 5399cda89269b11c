#pragma once
// The callbacks of one libcurl transfer.
#include <curl/curl.h>

#include <array>
#include <chrono>
#include <exception>
#include <memory>
#include <string_view>

#include "base/handle.hpp"
#include "base/http_transfer.hpp"

namespace mlenv::http {

using HeaderList = Owned<curl_slist_free_all>::of<curl_slist>;
using Clock = std::chrono::steady_clock;

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
  bool slow = false;    ///< the body came below the least rate
  bool late = false;    ///< the answer was not whole by its deadline
  bool enough = false;  ///< of a refusal's body: the rest was not read
  std::array<char, CURL_ERROR_SIZE> reason{};
  HeaderList headers;

 private:
  static std::size_t on_header(char* data, std::size_t, std::size_t count, void* self) noexcept {
    return static_cast<Running*>(self)->guarded(count, std::size_t{0}, [&](Running& running) {
      running.take_header({data, count});
    });
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t count, void* self) noexcept {
    const std::size_t taken =
        static_cast<Running*>(self)->guarded(count, std::size_t{0}, [&](Running& running) {
          running.take_body(as_bytes({data, count}));
        });
    return static_cast<Running*>(self)->enough ? 0 : taken;
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
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t sent) noexcept {
    return static_cast<Running*>(self)->watch(sent) ? 0 : 1;
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
    sent_whole_ = false;
  }
  bool watch(curl_off_t sent);
  void watch_rate(Clock::time_point now, std::uint64_t bytes);
  void start_window(Clock::time_point now, std::uint64_t bytes);
  void refuse_long_answer(std::uint64_t bytes) const;
  void note_own_work(Clock::time_point since) { own_work_ += Clock::now() - since; }

  const Exchange& exchange_;
  std::unique_ptr<Source> body_;
  std::uint64_t given_ = 0;
  bool routed_ = false;
  Sink* sink_ = nullptr;
  std::uint64_t head_bytes_ = 0;
  bool head_done_ = false;       ///< of the last answer, which is not 1xx
  bool sent_whole_ = false;      ///< the request's body
  std::uint64_t received_ = 0;   ///< bytes of the answer's body
  Clock::duration own_work_{0};  ///< time in our callbacks, which is not the server's
  std::uint64_t seen_bytes_ = 0;
  Clock::time_point seen_at_ = Clock::now();
  Clock::time_point asked_at_ = Clock::now();
  // The least rate is held over one window after the other.
  Clock::time_point window_at_ = Clock::now();
  Clock::duration window_own_work_{0};
  std::uint64_t window_bytes_ = 0;
};

/// Proxy Authentication Required (RFC 9110 §15.5.8): of a proxy, never of a server.
inline constexpr long kProxyLogin = 407;
Broken proxy_wants_login();

/// Why `curl_easy_perform` gave `code`.
Broken describe(CURL* curl, CURLcode code, const Running& running, const Exchange& exchange);

}  // namespace mlenv::http
