#pragma once
// Pieces of images for other nodes of the job. It waits for nothing: its owner polls.
#include <poll.h>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/handle.hpp"
#include "runner/node/peer_words.hpp"

namespace mlenv::job {

class PeerServer {
 public:
  /// The bytes of a request; nullptr: they are not there.
  using Find = std::function<std::unique_ptr<Source>(const PieceRequest&)>;
  explicit PeerServer(Find find) : find_(std::move(find)) {}

  /// From now on, for whoever knows the token. The port; 0: this node cannot listen there.
  std::uint16_t open(const std::string& token, const std::string& address);

  /// As NodeJob has them.
  void add_to(std::vector<pollfd>& fds) const;
  const pollfd* hear(const pollfd* seen);

 private:
  struct Guest {
    Fd fd;
    std::string in{};   ///< what it asked, as far as it is not answered
    std::string out{};  ///< for it
    std::size_t sent = 0;
    bool known = false;  ///< it said the token
    std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
    std::unique_ptr<Source> source{};
    std::uint64_t left = 0;  ///< of it
  };
  void accept_all();
  bool serve(Guest& guest, short events);
  bool take(Guest& guest) const;
  bool answer(Guest& guest);
  bool fill(Guest& guest) const;

  Find find_;
  std::string token_;
  Fd listening_;
  std::list<Guest> guests_;
};

}  // namespace mlenv::job
