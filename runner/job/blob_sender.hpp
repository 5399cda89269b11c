#pragma once
// Blobs on their way to a node: read from the store in pieces, as the link has room.
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "images/store.hpp"
#include "runner/job/channel.hpp"

namespace mlenv::job {

class BlobSender {
 public:
  /// What could not be read ends its request: `failed` is told, the node, too.
  using FailedEvent = std::function<void(const std::string& during, const Error&)>;

  void add(const Store& store, const Want& want);
  /// One piece of it.
  void add_piece(const Store& store, const std::string& during, const OfferedBlob& blob,
                 std::size_t piece);
  std::size_t waiting() const { return waiting_.size(); }
  bool busy() const { return !waiting_.empty(); }
  /// Queues pieces until there is no more room.
  void fill(Channel& channel, const FailedEvent& failed);
  /// Nothing more of that request.
  void forget(const std::string& during);
  std::uint64_t sent() const { return sent_; }
  std::uint64_t all() const { return all_; }

 private:
  struct Transfer {
    const Store* store;
    std::string during;
    OfferedBlob blob;
    std::uint64_t offset;
    std::uint64_t bytes;
  };
  void send_piece(Channel& channel);

  std::deque<Transfer> waiting_;
  std::unique_ptr<Source> source_;  ///< of the first one
  std::uint64_t left_ = 0;          ///< of it
  std::uint64_t sent_ = 0;
  std::uint64_t all_ = 0;
};

}  // namespace mlenv::job
