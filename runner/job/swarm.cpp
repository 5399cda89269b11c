#include "runner/job/swarm.hpp"

#include <algorithm>
#include <utility>

namespace mlenv::job {

bool Swarm::can_fetch(const Node& node, std::size_t from) const {
  if (node.source_only || from >= nodes_.size()) return false;
  const Node& other = nodes_[from];
  if (&other == &node || !other.joined || !other.serving) return false;
  return std::find(node.broken.begin(), node.broken.end(), from) == node.broken.end();
}

/// Some node that it reaches has the piece, or is about to.
bool Swarm::may_come(const Node& node, std::size_t piece) const {
  if (held_[piece] == 0 && on_way_[piece] == 0) return false;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].joined) continue;
    const At at = nodes_[i].pieces[piece];
    const bool has = at == At::there || at == At::on_way_from_source;
    if (has && can_fetch(node, i)) return true;
  }
  return false;
}

std::size_t Swarm::best_holder(const Node& node, std::size_t piece) const {
  std::size_t best = kNobody;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& one = nodes_[i];
    if (!one.joined || one.uploads >= kMostUploads || one.pieces[piece] != At::there) continue;
    if (!can_fetch(node, i)) continue;
    if (i < node.fetching.size() && node.fetching[i] >= kMostOfOne) continue;
    if (best == kNobody || one.uploads < nodes_[best].uploads) best = i;
  }
  return best;
}

/// The piece came to be at `holder`: whoever lacks it may fetch it there.
void Swarm::offer(std::size_t piece, std::size_t holder) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& one = nodes_[i];
    if (i == holder || !one.joined || one.pieces[piece] != At::absent) continue;
    one.fetchable.push_back(piece);
  }
}

void Swarm::join(std::size_t node, const std::vector<bool>& has) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  if (nodes_[node].joined) leave(node);
  const bool serving = nodes_[node].serving;
  nodes_[node] = Node{};
  Node& one = nodes_[node];
  one.joined = true;
  one.serving = serving;
  one.pieces.assign(held_.size(), At::absent);
  one.from.assign(held_.size(), kNobody);
  for (std::size_t piece = 0; piece < held_.size(); ++piece) {
    if (piece < has.size() && has[piece]) {
      one.pieces[piece] = At::there;
      ++one.has;
      if (held_[piece]++ == 0) offer(piece, node);
    } else if (held_[piece] > 0) {
      one.fetchable.push_back(piece);
    }
  }
  // Nodes that join together do not all begin with the same one.
  std::shuffle(one.fetchable.begin(), one.fetchable.end(), random_);
}

void Swarm::leave(std::size_t node) {
  if (node >= nodes_.size() || !nodes_[node].joined) return;
  Node& one = nodes_[node];
  for (std::size_t piece = 0; piece < held_.size(); ++piece) lose(one, piece);
  one.joined = false;
  one.serving = false;
  for (Node& other : nodes_) {
    other.next = 0;
    if (!other.joined) continue;
    std::erase(other.broken, node);
    for (std::size_t piece = 0; piece < held_.size(); ++piece) {
      if (other.pieces[piece] == At::on_way_from_node && other.from[piece] == node) {
        end_fetch(other, piece);
        if (held_[piece] > 0) other.fetchable.push_back(piece);
      }
    }
  }
}

void Swarm::serves(std::size_t node) {
  if (node >= nodes_.size()) nodes_.resize(node + 1);
  nodes_[node].serving = true;
}

void Swarm::end_fetch(Node& node, std::size_t piece) {
  if (node.pieces[piece] != At::on_way_from_node) return;
  node.pieces[piece] = At::absent;
  --node.fetches;
  const std::size_t from = std::exchange(node.from[piece], kNobody);
  if (nodes_[from].uploads > 0) --nodes_[from].uploads;
  --node.fetching[from];
}

void Swarm::lose(Node& node, std::size_t piece) {
  end_fetch(node, piece);
  const At was = std::exchange(node.pieces[piece], At::absent);
  if (was == At::on_way_from_source) --on_way_[piece];
  if (was != At::there) return;
  --held_[piece];
  --node.has;
}

bool Swarm::arrived(std::size_t node, std::size_t piece) {
  Node& one = nodes_.at(node);
  if (!one.joined || one.pieces.at(piece) == At::there) return false;
  const bool from_node = one.pieces[piece] == At::on_way_from_node;
  lose(one, piece);
  one.pieces[piece] = At::there;
  ++one.has;
  if (held_[piece]++ == 0) offer(piece, node);
  return from_node;
}

void Swarm::unreachable(std::size_t node, std::size_t piece, std::size_t from) {
  Node& one = nodes_.at(node);
  if (!one.joined) return;
  if (std::find(one.broken.begin(), one.broken.end(), from) == one.broken.end()) {
    one.broken.push_back(from);
    one.next = 0;  // what it was to get there the source may have to send
  }
  if (one.pieces.at(piece) != At::on_way_from_node || one.from[piece] != from) return;
  end_fetch(one, piece);
  one.fetchable.push_back(piece);
}

void Swarm::spoilt(std::size_t node, std::size_t first, std::size_t count) {
  Node& one = nodes_.at(node);
  if (!one.joined) return;
  for (std::size_t piece = first; piece < first + count; ++piece) lose(one, piece);
  one.source_only = true;
  one.next = 0;
}

void Swarm::dropped(std::size_t node, std::size_t piece) {
  Node& one = nodes_.at(node);
  if (!one.joined || one.pieces.at(piece) != At::on_way_from_source) return;
  lose(one, piece);
  if (held_[piece] > 0) one.fetchable.push_back(piece);
  for (Node& other : nodes_) other.next = std::min(other.next, piece);
}

bool Swarm::also_from_source(std::size_t node, std::size_t piece) {
  Node& one = nodes_.at(node);
  if (!one.joined || one.pieces.at(piece) != At::absent || may_come(one, piece)) return false;
  one.pieces[piece] = At::on_way_from_source;
  ++on_way_[piece];
  return true;
}

std::optional<std::size_t> Swarm::next_from_source(std::size_t node) {
  Node& one = nodes_.at(node);
  if (!one.joined) return std::nullopt;
  for (; one.next < held_.size(); ++one.next) {
    if (also_from_source(node, one.next)) return one.next;
  }
  return std::nullopt;
}

std::optional<std::size_t> Swarm::next_for_impatient(std::size_t node) {
  Node& one = nodes_.at(node);
  for (std::size_t piece = 0; one.joined && piece < held_.size(); ++piece) {
    if (one.pieces[piece] != At::absent || held_[piece] > 0) continue;
    one.pieces[piece] = At::on_way_from_source;
    ++on_way_[piece];
    return piece;
  }
  return std::nullopt;
}

std::optional<Swarm::Fetch> Swarm::next_fetch(std::size_t node) {
  constexpr std::size_t kMostLooks = 64;
  Node& one = nodes_.at(node);
  if (!one.joined || one.source_only || one.fetches >= kMostFetches) return std::nullopt;
  std::optional<Fetch> found;
  std::size_t place = 0;
  for (std::size_t look = 0; look < kMostLooks && look < one.fetchable.size();) {
    const std::size_t piece = one.fetchable[look];
    if (one.pieces[piece] != At::absent || held_[piece] == 0) {
      one.fetchable[look] = one.fetchable.back();
      one.fetchable.pop_back();
      continue;
    }
    const std::size_t from = best_holder(one, piece);
    const bool rarer = !found || held_[piece] < held_[found->piece];
    if (from != kNobody && rarer) {
      found = Fetch{piece, from};
      place = look;
    }
    ++look;
  }
  if (!found) {
    // Others are in the way of those behind them: the next look begins there.
    const std::size_t looked = std::min(kMostLooks, one.fetchable.size());
    std::rotate(one.fetchable.begin(), one.fetchable.begin() + static_cast<std::ptrdiff_t>(looked),
                one.fetchable.end());
    return std::nullopt;
  }
  one.fetchable.erase(one.fetchable.begin() + static_cast<std::ptrdiff_t>(place));
  one.pieces[found->piece] = At::on_way_from_node;
  one.from[found->piece] = found->from;
  if (one.fetching.size() < nodes_.size()) one.fetching.resize(nodes_.size(), 0);
  ++one.fetching[found->from];
  ++one.fetches;
  ++nodes_[found->from].uploads;
  return found;
}

std::size_t Swarm::count(std::size_t node) const {
  return node < nodes_.size() ? nodes_[node].has : 0;
}

}  // namespace mlenv::job
