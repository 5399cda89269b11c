#pragma once
// Connections between the link testers of a job's nodes: TCP, from and to the addresses by which
// the job meets. Both ends begin with a line of fixed length; whoever does not know the token of
// this preflight is turned away, and nothing else is ever read from or sent to them.
#include <poll.h>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "runner/job/link_test.hpp"

namespace mlenv::job {

using LinkClock = std::chrono::steady_clock;

/// What a connection is for.
struct LinkCall {
  char kind = '?';  ///< of the requests that make one
  std::uint64_t from = 0;
  std::uint64_t round = 0;
  friend bool operator==(const LinkCall&, const LinkCall&) = default;
};

/// Listens, at a port that is free and that no outgoing connection is given.
class LinkDoor {
 public:
  /// Throws `io` and its kin where it cannot listen.
  LinkDoor(const std::string& address, std::string token);
  std::uint16_t port() const { return port_; }

  /// What to wait for, appended; then the same, as poll(2) left them.
  void add_to(std::vector<pollfd>& fds) const;
  void hear(const pollfd* fds);
  /// One that has come; an empty one: it has not.
  Fd take(const LinkCall& call);

 private:
  struct Guest {
    Fd fd;
    std::string said{};
    LinkClock::time_point since = LinkClock::now();
  };
  struct Arrived {
    LinkCall call;
    Fd fd;
  };
  /// False: it is no guest any more.
  bool hear(Guest& guest);
  void accept_all();

  std::string token_;
  std::uint16_t port_ = 0;
  Fd fd_;
  std::vector<Guest> guests_;
  std::vector<Arrived> arrived_;
};

/// A connection on its way to another's door.
class LinkCaller {
 public:
  /// From `own`, an address of this node.
  LinkCaller(const std::string& own, const LinkPeer& peer, std::string_view token,
             const LinkCall& call);
  pollfd wanted() const;
  void hear(short events);
  bool over() const { return !how_.empty(); }
  /// Nothing more is waited for.
  void give_up();
  LinkReached reached() const { return {node_, how_, said_}; }
  /// Of one that has reached it.
  Fd take() { return std::move(fd_); }

 private:
  void connect(const std::string& own, const LinkPeer& peer);
  void fail(int error_number);
  void on_connected();
  void read_answer();

  std::uint64_t node_;
  std::string hello_;
  std::string answer_;  ///< so far
  bool connected_ = false;
  std::string how_;
  std::string said_;
  Fd fd_;
};

/// Waits for both until the caller is over or the time is; the door serves others meanwhile.
void wait_for_callers(std::vector<LinkCaller>& callers, LinkDoor& door,
                      LinkClock::time_point until);
/// Until it has come; an empty one: it has not in time.
Fd wait_for_guest(LinkDoor& door, const LinkCall& call, LinkClock::time_point until);
/// For poll(2): at least 0.
int milliseconds_until(LinkClock::time_point until);

}  // namespace mlenv::job
