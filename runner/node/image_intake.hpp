#pragma once
// An image on its way into this node's store, in pieces: from the controller's stream, from a
// registry, and from other nodes, to which it gives what it has. A layer is a blob of the store
// only when all of it is there and is what it is called. What came is kept when the agent ends, and
// the next one goes on from there.
//
// It waits for nothing: its owner polls.
#include <poll.h>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "images/partial_blob.hpp"
#include "images/store.hpp"
#include "runner/job/channel.hpp"
#include "runner/node/peer_fetches.hpp"
#include "runner/node/peer_server.hpp"
#include "runner/node/registry_fetches.hpp"

namespace mlenv::job {

class ImageIntake {
 public:
  ImageIntake(Channel& channel, Store& store);

  /// Says Want: those that the store lacks. In place of what was offered before. Throws `no-space`.
  void offer(const std::vector<OfferedBlob>& layers);
  /// From the controller: these, of what it lacks; anything else is dropped.
  void begin(const BeginBlob& begin);
  void take(std::string_view bytes);
  void fetch(const FetchPiece& piece);
  void use_registry(const UseRegistry& registry) { registry_.use(registry); }
  void fetch(const FetchRange& range);
  /// Says Serving.
  void serve(const ServePeers& peers);
  /// Nothing more of what was offered is taken; others are served on.
  void forget();

  void add_to(std::vector<pollfd>& fds) const;
  const pollfd* hear(const pollfd* seen);
  void tick() { fetches_.tick(); }
  /// There is something to do that nobody has to be waited for: the owner does not wait.
  bool busy() const { return !ready_to_hash_.empty() || error_ || (offered_ && coming_.empty()); }
  /// Does some of it. True: all of the image is there now, once. Throws what went wrong, here or
  /// while it was heard: `digest-mismatch`, `no-space` and its kin.
  bool advance();

 private:
  struct Coming {
    OfferedBlob blob;
    std::unique_ptr<PartialBlob> partial;
    bool from_others = false;  ///< some of it: not from the controller
    bool again = false;        ///< it was spoilt once
  };
  struct Stream {
    std::string digest;
    std::uint64_t offset = 0;
    std::uint64_t left = 0;
  };
  Coming* find(const std::string& digest);
  void write(const std::string& digest, std::uint64_t offset, std::string_view bytes);
  void piece_is_there(const std::string& digest, std::uint64_t piece);
  /// The same of one that the controller did not send.
  void piece_came(const std::string& digest, std::uint64_t piece);
  void finish(Coming& coming);
  std::unique_ptr<Source> source_of(const PieceRequest& request);
  template <class DoIt>
  void keep_error(DoIt&& work);

  Channel& channel_;
  Store& store_;
  std::map<std::string, Coming> coming_;  ///< by digest
  std::set<std::string> served_;          ///< digests of all that was offered
  std::set<std::string> ready_to_hash_;
  std::optional<Stream> stream_;
  bool offered_ = false;  ///< and not complete yet
  std::optional<Error> error_;
  PeerServer server_;
  PeerFetches fetches_;
  RegistryFetches registry_;
};

}  // namespace mlenv::job
