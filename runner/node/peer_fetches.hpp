#pragma once
// Pieces of images on their way from other nodes of the job: a connection to each, and several
// requests under way in it. It waits for nothing: its owner polls.
#include <poll.h>
#include <chrono>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/handle.hpp"
#include "runner/job/messages.hpp"
#include "runner/node/peer_words.hpp"

namespace mlenv::job {

struct PeerFetchEvents {
  /// Bytes of a piece, from that offset of its blob.
  std::function<void(const FetchPiece&, std::uint64_t offset, std::string_view bytes)> bytes;
  std::function<void(const FetchPiece&)> whole;
  std::function<void(const FetchPiece&, const std::string& why)> failed;
};

class PeerFetches {
 public:
  /// Of a piece of which a byte comes now and then: others may have it.
  static constexpr std::chrono::milliseconds kMostOfPiece{60'000};

  explicit PeerFetches(PeerFetchEvents events, std::chrono::milliseconds most = kMostOfPiece)
      : events_(std::move(events)), most_of_piece_(most) {}

  void set_token(std::string token) { token_ = std::move(token); }
  /// `length`: of that piece.
  void fetch(const FetchPiece& piece, std::uint64_t length);
  /// Nothing more of what was asked for: nobody hears of it.
  void forget() { peers_.clear(); }

  /// As NodeJob has them.
  void add_to(std::vector<pollfd>& fds) const;
  const pollfd* hear(const pollfd* seen);
  /// Gives up whoever gives nothing, or so little that nobody can wait for it.
  void tick();

 private:
  using Clock = std::chrono::steady_clock;
  struct Asked {
    FetchPiece piece;
    std::uint64_t offset;  ///< of what is to come next
    std::uint64_t left;
    bool begun = false;  ///< it said OK
  };
  struct Peer {
    std::string address;
    std::uint16_t port = 0;
    Fd fd{};
    bool connected = false;
    std::string out{};
    std::string line{};  ///< its answer, as far as it came
    std::deque<Asked> asked{};
    Clock::time_point heard = Clock::now();
    Clock::time_point turn = Clock::now();  ///< since when the first one is awaited
  };
  Peer& peer(const FetchPiece& piece);
  /// Empty: all is well; else why it is given up.
  std::string serve(Peer& peer, short events);
  std::string send(Peer& peer) const;
  std::string receive(Peer& peer);
  std::string take(Peer& peer, std::string_view bytes);
  void give_up(Peer& peer, const std::string& why);

  PeerFetchEvents events_;
  std::chrono::milliseconds most_of_piece_;
  std::string token_;
  std::list<Peer> peers_;
};

}  // namespace mlenv::job
