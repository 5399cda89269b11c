#include "runner/job/image_spread.hpp"

#include <algorithm>

#include "images/partial_blob.hpp"
#include "runner/job/store_id.hpp"
#include "runner/mpi/frames.hpp"

namespace mlenv::job {
namespace {

/// In a link's queue, behind what it sends now.
constexpr std::size_t kMostWaiting = 2;
/// A node to which nothing came for so long is sent what others do not have either.
constexpr std::chrono::seconds kPatience{2};

std::size_t piece_total(std::uint64_t pieces) { return static_cast<std::size_t>(pieces); }

}  // namespace

std::vector<ImageSpread::Blob> ImageSpread::blobs_of(const Store& store,
                                                     const std::string& digest) {
  std::vector<Blob> blobs;
  if (digest.empty()) return blobs;
  std::size_t first = 0;
  for (const Layer& layer : store.image(Digest::parse(digest)).layers) {
    Blob one{{layer.blob.digest.str(), layer.blob.size_bytes},
             first,
             piece_count(layer.blob.size_bytes)};
    const bool known = std::any_of(blobs.begin(), blobs.end(), [&](const Blob& other) {
      return other.blob.digest == one.blob.digest;
    });
    if (known) continue;
    first += one.pieces;
    blobs.push_back(std::move(one));
  }
  return blobs;
}

ImageSpread::ImageSpread(Store& store, SpreadSettings settings, Shown came)
    : store_(store),
      settings_(std::move(settings)),
      came_(std::move(came)),
      token_(mpi::fresh_secret()),
      own_store_(store_id(store.root())),
      blobs_(blobs_of(store, settings_.digest)),
      swarm_(blobs_.empty() ? 0 : piece_total(blobs_.back().first + blobs_.back().pieces)) {
  for (const Blob& one : blobs_) bytes_ += one.blob.size_bytes;
}

ImageSpread::Node& ImageSpread::node(std::size_t index) {
  if (index >= nodes_.size()) nodes_.resize(index + 1);
  return nodes_[index];
}

const SpreadCount& ImageSpread::count(std::size_t index) { return node(index).count; }

const ImageSpread::Blob* ImageSpread::find(const std::string& digest) const {
  for (const Blob& one : blobs_) {
    if (one.blob.digest == digest) return &one;
  }
  return nullptr;
}

ImageSpread::Place ImageSpread::place_of(std::size_t piece) const {
  const auto after =
      std::upper_bound(blobs_.begin(), blobs_.end(), piece,
                       [](std::size_t number, const Blob& one) { return number < one.first; });
  const Blob& blob = *std::prev(after);
  return {&blob, piece - blob.first};
}

std::uint64_t ImageSpread::bytes_of(std::size_t piece) const {
  const Place place = place_of(piece);
  return std::min(kPieceBytes, place.blob->blob.size_bytes - place.piece * kPieceBytes);
}

// --- what nodes say --------------------------------------------------------------------------

void ImageSpread::listen(std::size_t index, NodeEvents& events) {
  events.lacking = [this, index](const Want& want) { on_lacking(index, want); };
  events.serving = [this, index](std::uint16_t port) {
    node(index).port = port;
    if (port != 0) swarm_.serves(index);
  };
  events.arrived = [this, index](const PieceArrived& piece) { on_arrived(index, piece); };
  events.not_fetched = [this, index](const PieceFailed& piece) { on_not_fetched(index, piece); };
  events.spoilt = [this, index](const BlobSpoilt& blob) { on_spoilt(index, blob); };
}

void ImageSpread::met(std::size_t index, NodeLink& link, const NodeHello& hello,
                      const std::string& address) {
  Node& one = node(index);
  one = Node{&link, hello.store_id, address};
  one.count.bytes = bytes_;
  // Also one that others do not reach may reach them.
  if (settings_.among_nodes) link.serve_peers(token_, address);
  if (!brought_by_another(one)) offer(one);
}

void ImageSpread::offer(Node& one) {
  one.asked = true;
  one.link->send_image(store_, settings_.digest, settings_.names);
}

/// Ours has all of it already, so nobody has to be waited for.
bool ImageSpread::brought_by_another(const Node& one) const {
  if (one.store_id.empty() || one.store_id == own_store_) return false;
  return std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
    return &other != &one && other.link != nullptr && other.asked && !other.done &&
           other.store_id == one.store_id;
  });
}

void ImageSpread::offer_to_waiting() {
  for (Node& one : nodes_) {
    if (one.link != nullptr && !one.asked && !brought_by_another(one)) offer(one);
  }
}

void ImageSpread::done(std::size_t index) {
  node(index).done = true;
  offer_to_waiting();
}

void ImageSpread::lost(std::size_t index) {
  Node& one = node(index);
  if (one.link == nullptr) return;
  one.link = nullptr;
  swarm_.leave(index);
  offer_to_waiting();
}

void ImageSpread::on_lacking(std::size_t index, const Want& want) {
  Node& one = node(index);
  std::vector<bool> has(swarm_.pieces(), true);
  for (const OfferedBlob& wanted : want.blobs) {
    const Blob* blob = find(wanted.digest);
    if (blob == nullptr) continue;
    for (std::size_t i = 0; i < blob->pieces; ++i) has[blob->first + i] = false;
  }
  for (const KeptPieces& kept : want.kept) {
    const Blob* blob = find(kept.digest);
    if (blob == nullptr || kept.pieces.size() != blob->pieces) continue;
    for (std::size_t i = 0; i < blob->pieces; ++i) {
      if (kept.pieces[i] == '1') has[blob->first + i] = true;
    }
  }
  one.count.had = 0;
  for (std::size_t i = 0; i < has.size(); ++i) one.count.had += has[i] ? bytes_of(i) : 0;
  one.count.there = one.count.had;
  one.joined = true;
  one.moved = Clock::now();
  swarm_.join(index, has);
  came_(index);
}

void ImageSpread::on_arrived(std::size_t index, const PieceArrived& piece) {
  Node& one = node(index);
  const Blob* blob = find(piece.digest);
  if (!one.joined || blob == nullptr || piece.piece >= blob->pieces) return;
  const std::size_t number = blob->first + piece_total(piece.piece);
  if (swarm_.has(index, number)) return;
  const std::uint64_t bytes = bytes_of(number);
  const bool from_node = swarm_.arrived(index, number);
  (from_node ? one.count.from_nodes : one.count.from_here) += bytes;
  one.count.there += bytes;
  one.moved = Clock::now();
  came_(index);
}

void ImageSpread::on_not_fetched(std::size_t index, const PieceFailed& piece) {
  const Blob* blob = find(piece.digest);
  if (!node(index).joined || blob == nullptr || piece.piece >= blob->pieces) return;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].address != piece.address || nodes_[i].port != piece.port) continue;
    swarm_.unreachable(index, blob->first + piece_total(piece.piece), i);
  }
}

void ImageSpread::on_spoilt(std::size_t index, const BlobSpoilt& blob) {
  const Blob* found = find(blob.digest);
  Node& one = node(index);
  if (!one.joined || found == nullptr) return;
  swarm_.spoilt(index, found->first, found->pieces);
  one.count.there -= std::min(one.count.there, found->blob.size_bytes);
}

// --- what they are told ----------------------------------------------------------------------

void ImageSpread::advance() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].link == nullptr || !nodes_[i].joined || swarm_.whole(i)) continue;
    have_fetched(i);
    send_to(i);
  }
}

void ImageSpread::have_fetched(std::size_t index) {
  while (const std::optional<Swarm::Fetch> next = swarm_.next_fetch(index)) {
    const Place place = place_of(next->piece);
    const Node& from = nodes_[next->from];
    nodes_[index].link->fetch(
        FetchPiece{from.address, from.port, place.blob->blob.digest, place.piece});
  }
}

void ImageSpread::send_to(std::size_t index) {
  Node& one = nodes_[index];
  while (one.link->pieces_waiting() < kMostWaiting) {
    std::optional<std::size_t> piece = swarm_.next_from_source(index);
    if (!piece && Clock::now() - one.moved > kPatience) piece = swarm_.next_for_impatient(index);
    if (!piece) return;
    const Place place = place_of(*piece);
    one.link->send_piece(store_, place.blob->blob, place.piece);
  }
}

}  // namespace mlenv::job
