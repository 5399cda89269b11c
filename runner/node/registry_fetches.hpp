#pragma once
// Pieces of images on their way from a registry, by this machine's own curl(1): its proxies, its
// certificate authorities, its names. One curl a range of pieces; what it is told stands on its
// standard input, never in its arguments or in a file. It waits for nothing: its owner polls.
#include <poll.h>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/process.hpp"
#include "runner/job/messages.hpp"
#include "runner/node/curl_words.hpp"

namespace mlenv::job {

struct RegistryFetchEvents {
  /// Bytes of one piece of a blob, from that offset of the blob.
  std::function<void(const std::string& digest, std::uint64_t offset, std::string_view bytes)>
      bytes;
  std::function<void(const std::string& digest, std::uint64_t piece)> whole;
  /// Of each range, once, whatever came of it.
  std::function<void(const RangeEnded&)> ended;
};

class RegistryFetches {
 public:
  explicit RegistryFetches(RegistryFetchEvents events) : events_(std::move(events)) {}

  /// For fetches from now on; those under way go on as they began.
  void use(const UseRegistry& registry) { registry_ = registry; }
  /// `size`: of the blob. A range that is not in it, or one without a registry, ends at once.
  void fetch(const FetchRange& range, std::uint64_t size);
  /// Nothing more of what was asked for: nobody hears of it.
  void forget() { fetches_.clear(); }

  /// As NodeJob has them.
  void add_to(std::vector<pollfd>& fds) const;
  const pollfd* hear(const pollfd* seen);

 private:
  struct Fetch {
    FetchRange range;
    std::uint64_t serial = 0;
    std::string blobs{};          ///< of the registry: its origin is the login's
    std::string authorization{};  ///< sent where the origin is
    bool any_certificate = false;
    std::string url{};
    int redirects = 0;
    std::uint64_t at = 0;    ///< of the blob: what is to come next
    std::uint64_t end = 0;   ///< of the range
    std::uint64_t skip = 0;  ///< bytes of the blob before it, that come too
    bool whole_blob = false;
    std::optional<Child> curl{};
    Fd out{};
    Fd err{};
    std::string said{};  ///< on standard error
    AnswerReader reader{};
    std::optional<AnswerHead> head{};
    bool gives_ranges = false;
  };
  /// How one goes on, or ended: `how` as RangeEnded has it.
  struct Turn {
    bool over = false;
    std::string how{};
    std::string why{};
  };
  static void begin(Fetch& fetch);
  Turn receive(Fetch& fetch);
  Turn take(Fetch& fetch, std::string_view bytes);
  void take_body(Fetch& fetch, std::string_view bytes);
  static Turn on_head(Fetch& fetch);
  static Turn follow(Fetch& fetch);
  static Turn on_end(Fetch& fetch);
  void tell_end(const Fetch& fetch, const Turn& turn);

  RegistryFetchEvents events_;
  std::optional<UseRegistry> registry_;
  std::list<Fetch> fetches_;
};

}  // namespace mlenv::job
