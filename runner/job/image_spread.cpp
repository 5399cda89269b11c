#include "runner/job/image_spread.hpp"

#include <algorithm>

#include "images/partial_blob.hpp"
#include "runner/job/store_id.hpp"
#include "runner/mpi/frames.hpp"

namespace mlenv::job {
namespace {

/// In a link's queue, behind what it sends now.
constexpr std::size_t kMostPiecesWaiting = 2;
/// A node to which nothing came for so long is sent what others do not have either.
constexpr std::chrono::seconds kSpreadPatience{2};
/// The same where a registry brings it: whoever fetches there says what goes wrong.
constexpr std::chrono::seconds kPatienceWithRegistry{60};
/// Nodes come one after the other, and the next one may be the one that fetches for this one.
constexpr std::chrono::seconds kOthersMayCome{5};
/// Where we cannot help it.
constexpr std::chrono::seconds kOthersMustCome{60};

std::size_t piece_total(std::uint64_t pieces) { return static_cast<std::size_t>(pieces); }

}  // namespace

std::vector<ImageSpread::Blob> ImageSpread::blobs_of(const Store& store,
                                                     const SpreadSettings& settings) {
  std::vector<Blob> blobs;
  const std::string& digest = settings.digest;
  if (digest.empty()) return blobs;
  std::size_t first = 0;
  for (const Layer& layer : store.image(Digest::parse(digest)).layers) {
    Blob one{{layer.blob.digest.str(), layer.blob.size_bytes},
             first,
             piece_count(layer.blob.size_bytes),
             settings.from.repository.empty() || store.has(layer.blob.digest)};
    const bool known = std::any_of(blobs.begin(), blobs.end(), [&](const Blob& other) {
      return other.blob.digest == one.blob.digest;
    });
    if (known) continue;
    first += one.pieces;
    blobs.push_back(std::move(one));
  }
  return blobs;
}

ImageSpread::ImageSpread(Store& store, SpreadSettings settings, SpreadEvents events)
    : store_(store),
      settings_(std::move(settings)),
      events_(std::move(events)),
      token_(mpi::fresh_secret()),
      own_store_(store_id(store.root())),
      blobs_(blobs_of(store, settings_)),
      swarm_(blobs_.empty() ? 0 : piece_total(blobs_.back().first + blobs_.back().pieces)) {
  for (const Blob& one : blobs_) {
    bytes_ += one.blob.size_bytes;
    all_here_ = all_here_ && one.here;
  }
  if (settings_.from.repository.empty() || blobs_.empty()) return;
  RegistrySource::Owner owner;
  owner.use = [this](std::size_t index, const UseRegistry& grant) {
    if (node(index).link != nullptr) node(index).link->use_registry(grant);
  };
  owner.notice = events_.notice;
  owner.here = all_here_;
  registry_.emplace(settings_.from, settings_.grants, std::move(owner));
}

ImageSpread::Node& ImageSpread::node(std::size_t index) {
  if (index >= nodes_.size()) nodes_.resize(index + 1);
  return nodes_[index];
}

const SpreadCount& ImageSpread::count(std::size_t index) {
  SpreadCount& count = node(index).count;
  if (std::string why = registry_ ? registry_->why_not(index) : ""; !why.empty()) {
    count.no_registry = std::move(why);
  }
  return count;
}

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
  events.range_ended = [this, index](const RangeEnded& range) { on_range_ended(index, range); };
}

void ImageSpread::met(std::size_t index, NodeLink& link, const std::string& name,
                      const NodeHello& hello, const std::string& address) {
  Node& one = node(index);
  one = Node{&link, name, !hello.curl.empty(), hello.store_id, address};
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
  if (registry_) registry_->leave(index);
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
  one.since = one.moved = Clock::now();
  swarm_.join(index, has);
  if (registry_ && !swarm_.whole(index)) registry_->join(index, one.name, one.has_curl);
  events_.came(index);
}

void ImageSpread::on_arrived(std::size_t index, const PieceArrived& piece) {
  Node& one = node(index);
  const Blob* blob = find(piece.digest);
  if (!one.joined || blob == nullptr || piece.piece >= blob->pieces) return;
  const std::size_t number = blob->first + piece_total(piece.piece);
  if (swarm_.has(index, number)) return;
  const std::uint64_t bytes = bytes_of(number);
  const bool from_node = swarm_.arrived(index, number);
  const bool pulled = registry_ && registry_->brings(index, piece.digest, piece.piece);
  if (pulled) registry_->piece_came(index);
  SpreadCount& count = one.count;
  (pulled ? count.from_registry : from_node ? count.from_nodes : count.from_here) += bytes;
  count.there += bytes;
  one.moved = Clock::now();
  events_.came(index);
}

/// What of it did not come is wanted again.
void ImageSpread::on_range_ended(std::size_t index, const RangeEnded& range) {
  const Blob* blob = find(range.digest);
  const bool within =
      blob != nullptr && range.first < blob->pieces && range.pieces <= blob->pieces - range.first;
  if (!node(index).joined || !registry_ || !within) return;
  registry_->ended(index, range, Clock::now());
  const std::size_t first = blob->first + piece_total(range.first);
  for (std::size_t i = 0; i < range.pieces; ++i) swarm_.dropped(index, first + i);
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
  // It may have been another node's doing: what we have ourselves is what it should be.
  if (registry_ && all_here_) {
    registry_->close(fmt::format("what came of `{}` has another digest", blob.digest));
  }
  one.count.there -= std::min(one.count.there, found->blob.size_bytes);
}

// --- what they are told ----------------------------------------------------------------------

void ImageSpread::advance() {
  if (registry_) registry_->advance(Clock::now());
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].link == nullptr || !nodes_[i].joined || swarm_.whole(i)) continue;
    have_fetched(i);
    if (registry_) have_pulled(i);
    send_to(i);
  }
  if (all_here_) return;
  for (std::size_t i = 0; i < nodes_.size(); ++i) look_if_stuck(i);
}

void ImageSpread::have_fetched(std::size_t index) {
  while (const std::optional<Swarm::Fetch> next = swarm_.next_fetch(index)) {
    const Place place = place_of(next->piece);
    const Node& from = nodes_[next->from];
    nodes_[index].link->fetch(
        FetchPiece{from.address, from.port, place.blob->blob.digest, place.piece});
  }
}

void ImageSpread::have_pulled(std::size_t index) {
  // Where it was given wrong bytes it has them from here.
  if (swarm_.is_alone(index) && all_here_) return;
  while (registry_->ready(index, Clock::now())) {
    const std::optional<std::size_t> first = swarm_.next_from_source(index);
    if (!first) return;
    const Place place = place_of(*first);
    const std::size_t most =
        std::min(registry_->range_pieces(swarm_.pieces() - swarm_.count(index)),
                 place.blob->pieces - place.piece);
    FetchRange range{place.blob->blob.digest, place.piece, 1};
    while (range.pieces < most && swarm_.also_from_source(index, *first + range.pieces)) {
      ++range.pieces;
    }
    registry_->began(index, range);
    nodes_[index].link->fetch(range);
  }
}

bool ImageSpread::is_pulled_for(std::size_t index) const {
  if (!registry_ || registry_->is_closed()) return false;
  const auto most = all_here_ ? kOthersMayCome : kOthersMustCome;
  const bool early = Clock::now() - nodes_[index].since < most;
  if (settings_.among_nodes && early && !registry_->was_tried()) return true;
  if (swarm_.is_alone(index)) return !all_here_ && registry_->usable(index);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (registry_->usable(i) && (i == index || swarm_.reaches(index, i))) return true;
  }
  return false;
}

void ImageSpread::look_if_stuck(std::size_t index) {
  if (nodes_[index].link == nullptr || !nodes_[index].joined || swarm_.whole(index)) return;
  if (is_pulled_for(index)) return;
  for (const Blob& one : blobs_) {
    for (std::size_t i = 0; !one.here && i < one.pieces; ++i) {
      if (swarm_.comes(index, one.first + i)) continue;
      const std::string why = registry_ ? registry_->why_not(index) : "";
      Error error = failure("not-fetched", "the layer `{}` is nowhere to be had", one.blob.digest);
      error.because("it is not in the store here");
      if (!why.empty()) {
        error.because(fmt::format("nor does it come from `{}`: {}", registry_->host(), why));
      }
      error.hint("pull the image here, or build it, and copy it again");
      return events_.stuck(index, error);
    }
  }
}

void ImageSpread::send_to(std::size_t index) {
  Node& one = nodes_[index];
  const bool pulled = is_pulled_for(index);
  const auto patience = pulled ? kPatienceWithRegistry : kSpreadPatience;
  while (all_here_ && one.link->pieces_waiting() < kMostPiecesWaiting) {
    std::optional<std::size_t> piece;
    if (!pulled) piece = swarm_.next_from_source(index);
    if (!piece && Clock::now() - one.moved > patience) piece = swarm_.next_for_impatient(index);
    if (!piece) return;
    const Place place = place_of(*piece);
    one.link->send_piece(store_, place.blob->blob, place.piece);
  }
}

}  // namespace mlenv::job
