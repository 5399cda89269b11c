#pragma once
// An image on its way to all nodes of a job at once. We send each piece of what nodes lack to one
// of them, and have them fetch the others from each other (swarm.hpp); nodes that have a layer
// already give it to those that lack it. Nodes that share a store have it brought once.
//
// Where a registry is named, nodes fetch from it (registry_source.hpp) what we would send, and we
// send what none of those that a node reaches can get there.
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "images/store.hpp"
#include "runner/job/messages.hpp"
#include "runner/job/registry_source.hpp"
#include "runner/job/swarm.hpp"

namespace mlenv::job {

struct SpreadSettings {
  std::string digest;              ///< of the manifest; empty: there is no image to bring
  std::vector<std::string> names;  ///< that it is to have on each node
  bool among_nodes = true;         ///< false: all of it comes from here
  PullFrom from{};                 ///< nodes fetch it there
  GrantSource grants{};            ///< of `from`
};

struct SpreadEvents {
  std::function<void(std::size_t node)> came;        ///< now and then: something, to a node
  std::function<void(const std::string&)> notice{};  ///< a sentence for the person
  /// What a node lacks is nowhere to be had.
  std::function<void(std::size_t node, const Error&)> stuck{};
};

/// What became of one node.
struct SpreadCount {
  std::uint64_t bytes = 0;       ///< of the image's layers
  std::uint64_t there = 0;       ///< that it has by now
  std::uint64_t had = 0;         ///< that it had before, or kept from an interrupted copy
  std::uint64_t from_here = 0;   ///< that were sent from here
  std::uint64_t from_nodes = 0;  ///< that it fetched from other nodes
  std::uint64_t from_registry = 0;
  std::string no_registry{};  ///< why it did not, or no more, fetch from the registry; may be empty
};

class ImageSpread {
 public:
  ImageSpread(Store& store, SpreadSettings settings, SpreadEvents events);
  ImageSpread(const ImageSpread&) = delete;
  ImageSpread& operator=(const ImageSpread&) = delete;
  ~ImageSpread() = default;

  /// Before a link is made: hears what concerns it.
  void listen(std::size_t index, NodeEvents& events);
  /// The node of that name said hello. `address`: at which other nodes reach it; empty: they do
  /// not.
  void met(std::size_t index, NodeLink& link, const std::string& name, const NodeHello& hello,
           const std::string& address);
  /// It has proven its image.
  void done(std::size_t index);
  /// Its link goes.
  void lost(std::size_t index);
  /// Has pieces sent and fetched, as far as there is room. To be called whenever something was
  /// heard or sent.
  void advance();

  const SpreadCount& count(std::size_t index);

 private:
  using Clock = std::chrono::steady_clock;
  struct Node {
    NodeLink* link = nullptr;
    std::string name;
    bool has_curl = false;
    std::string store_id;
    std::string address;
    std::uint16_t port = 0;
    bool asked = false;   ///< it was offered the image
    bool joined = false;  ///< it said what it lacks
    bool done = false;
    Clock::time_point since{};  ///< when it said that
    Clock::time_point moved{};  ///< when something came last
    SpreadCount count{};
  };
  struct Blob {
    OfferedBlob blob;
    std::size_t first = 0;  ///< number of its first piece
    std::size_t pieces = 0;
    bool here = true;  ///< our store has it; of an image that is in a registry, too
  };
  struct Place {
    const Blob* blob;
    std::size_t piece;  ///< of the blob
  };

  Node& node(std::size_t index);
  void offer(Node& one);
  /// Offers the image to those that wait for another node's store to have it.
  void offer_to_waiting();
  bool brought_by_another(const Node& one) const;
  void on_lacking(std::size_t index, const Want& want);
  void on_arrived(std::size_t index, const PieceArrived& piece);
  void on_not_fetched(std::size_t index, const PieceFailed& piece);
  void on_spoilt(std::size_t index, const BlobSpoilt& blob);
  void on_range_ended(std::size_t index, const RangeEnded& range);
  void send_to(std::size_t index);
  void have_pulled(std::size_t index);
  /// A registry brings what it lacks: to it, or to nodes that it reaches.
  bool is_pulled_for(std::size_t index) const;
  void look_if_stuck(std::size_t index);
  void have_fetched(std::size_t index);
  const Blob* find(const std::string& digest) const;
  Place place_of(std::size_t piece) const;
  std::uint64_t bytes_of(std::size_t piece) const;
  static std::vector<Blob> blobs_of(const Store& store, const SpreadSettings& settings);

  Store& store_;
  SpreadSettings settings_;
  SpreadEvents events_;
  std::optional<RegistrySource> registry_;
  bool all_here_ = true;  ///< else nothing is sent from here
  std::string token_;
  std::string own_store_;
  std::vector<Blob> blobs_;
  std::uint64_t bytes_ = 0;
  Swarm swarm_;
  std::vector<Node> nodes_;
};

}  // namespace mlenv::job
