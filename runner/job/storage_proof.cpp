#include "runner/job/storage_proof.hpp"

#include <algorithm>

#include "runner/mpi/frames.hpp"

namespace mlenv::job {
namespace {

using std::chrono::seconds;

/// A node that is on its way is waited for no longer, so that the lowest is the first.
constexpr seconds kOthers{5};
/// File systems of a network remember for a while what they saw.
constexpr seconds kLookTime{10};
/// A file system that does not answer by then.
constexpr seconds kStorageSilence{60};
constexpr seconds kRemoval{10};

constexpr std::string_view kMarkerPrefix = ".mlenv-storage-";
constexpr std::size_t kMarkerDigits = 16;

Error no_storage(const StorageUse& use, std::string_view what, const std::string& node) {
  return failure("no-storage", "the storage `{}` {} at `{}` on node `{}`", use.name, what, use.path,
                 node);
}

/// Why a node that sees a place so cannot take part.
Error sight_error(const StorageUse& use, const StorageSight& sight, const std::string& node) {
  if (sight.problem == kStorageUnwritten) {
    return no_storage(use, "cannot be written", node)
        .because(sight.said)
        .hint("let it be mounted for writing there, or end the mount with `:ro`");
  }
  if (sight.problem == kStorageForbidden) {
    return no_storage(use, "cannot be written", node)
        .because(sight.said)
        .hint(fmt::format("name a folder of it that the user who runs the job may write there, as "
                          "in `@{}/FOLDER`, or end the mount with `:ro`",
                          use.name));
  }
  if (sight.problem == kStorageFull) {
    return no_storage(use, "is full", node)
        .because(sight.said)
        .hint("make room there, or end the mount with `:ro`");
  }
  if (sight.problem == kStorageUnread) {
    return no_storage(use, "cannot be read", node)
        .because(sight.said)
        .hint("give the user who runs the job the right to read it there");
  }
  return no_storage(use, "is not", node)
      .because(sight.said)
      .hint(
          "mount it there, or make the folder; `storage` of config.yaml or of the job.yaml says "
          "where it is");
}

}  // namespace

std::optional<std::string_view> compared(const StorageSight& one, const StorageSight& other,
                                         bool one_kernel) {
  if (one_kernel && one.device == other.device && one.inode == other.inode) return kByDevice;
  if (one.type != other.type) return std::nullopt;
  const bool own = one.own_disk || other.own_disk;
  if (one_kernel && own) return std::nullopt;
  if (one.inode == other.inode && one.changed_ns == other.changed_ns) return kByCompared;
  if (own) return std::nullopt;
  return kUnproven;
}

// --- what is heard -----------------------------------------------------------------------------

void StorageProof::met(std::size_t node, const std::string& name, const std::string& machine,
                       Time now) {
  if (places_.empty()) return;
  nodes_[node] = Node{name, machine, Step::looks, now};
  ask(node, Step::looks, kStorageLook, now);
}

void StorageProof::heard(std::size_t node, const std::string& answer, Time now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  try {
    if (answer.empty()) throw failure("bad-stream", "what looks at it there has ended");
    const StorageAnswer told = parse_storage_answer(answer);
    if (told.sights.size() != places_.size()) throw failure("bad-stream", "it said too little");
    const Step step = found->second.step;
    const bool of_round = round_ && told.round == round_->number;
    if (step == Step::looks && told.what == kStorageLook) {
      looked(node, told, now);
    } else if (step == Step::leaves && of_round && told.what == kStorageLeave) {
      left(told, now);
    } else if (step == Step::finds && of_round && told.what == kStorageFind) {
      found->second.step = Step::found;
      found->second.seen.clear();
      for (const StorageSight& one : told.sights) found->second.seen.push_back(one.seen);
    } else if (step == Step::removes && of_round && told.what == kStorageRemove) {
      if (!std::all_of(told.sights.begin(), told.sights.end(),
                       [](const StorageSight& one) { return one.problem.empty(); })) {
        take_back();
      }
      conclude(now);
    }
  } catch (const Error& error) {
    ended(node, error.frames().back(), now);
  }
  tell();
}

void StorageProof::looked(std::size_t node, const StorageAnswer& answer, Time now) {
  Node& state = nodes_.at(node);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (answer.sights[i].problem.empty()) continue;
    return fail(node, sight_error(places_[i], answer.sights[i], state.name));
  }
  state.sights = answer.sights;
  state.step = Step::waits;
  state.since = now;
}

void StorageProof::left(const StorageAnswer& answer, Time now) {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].writes || answer.sights[i].problem.empty()) continue;
    return first_cannot(sight_error(places_[i], answer.sights[i], nodes_.at(round_->first).name),
                        now);
  }
  find_it(now);
}

/// Nothing more is to be heard of it.
void StorageProof::ended(std::size_t node, const std::string& why, Time now) {
  Node& state = nodes_.at(node);
  Error error = no_storage(places_.front(), "cannot be seen", state.name).because(why);
  if (state.step == Step::removes) {
    take_back();
    return conclude(now);
  }
  if (state.step == Step::leaves) return first_cannot(std::move(error), now);
  if (state.step == Step::looks || state.step == Step::finds) fail(node, std::move(error));
}

void StorageProof::lost(std::size_t node, Time now) {
  if (nodes_.erase(node) == 0) return;
  if (!round_ || round_->first != node) return;
  take_back();
  round_.reset();
  for (auto& [index, one] : nodes_) {
    if (one.step != Step::finds && one.step != Step::found) continue;
    one.step = Step::waits;
    one.since = now;
  }
}

void StorageProof::tick(Time now, bool others_come) {
  std::vector<std::size_t> silent;
  for (const auto& [index, node] : nodes_) {
    const auto since = now - node.since;
    const bool asked = node.step == Step::looks || node.step == Step::leaves;
    if ((asked && since > kStorageSilence) ||
        (node.step == Step::finds && since > kLookTime + kStorageSilence) ||
        (node.step == Step::removes && since > kRemoval)) {
      silent.push_back(index);
    }
  }
  for (const std::size_t node : silent) {
    if (nodes_.contains(node)) ended(node, "its file system does not answer", now);
  }
  advance(now, others_come);
  tell();
}

// --- rounds ------------------------------------------------------------------------------------

bool StorageProof::any(Step step) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const auto& one) { return one.second.step == step; });
}

void StorageProof::ask(std::size_t node, Step step, std::string_view what, Time now) {
  Node& state = nodes_.at(node);
  state.step = step;
  state.since = now;
  StorageRequest request;
  request.what = what;
  request.places = places_;
  if (round_ && what != kStorageLook) {
    request.round = round_->number;
    request.marker = round_->marker;
    request.wait_ms = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(kLookTime).count());
  }
  talk_.ask(node, render_storage_request(request));
}

void StorageProof::advance(Time now, bool others_come) {
  if (!round_) begin(now, others_come);
  if (!round_ || any(Step::leaves) || any(Step::finds) || any(Step::removes)) return;
  if (round_->marker.empty()) return conclude(now);
  ask(round_->first, Step::removes, kStorageRemove, now);
}

void StorageProof::begin(Time now, bool others_come) {
  std::optional<std::size_t> proven;
  std::vector<std::size_t> waiting;
  Time oldest = now;
  for (const auto& [index, node] : nodes_) {
    if (node.proven && !proven) proven = index;
    if (node.step != Step::waits) continue;
    waiting.push_back(index);
    oldest = std::min(oldest, node.since);
  }
  if (waiting.empty()) return;
  const bool more = others_come || any(Step::looks);
  if (more && now - oldest < kOthers) return;
  if (!proven && waiting.size() == 1) {
    std::vector<StorageProven> alone;
    const Node& node = nodes_.at(waiting.front());
    for (std::size_t i = 0; i < places_.size(); ++i) {
      alone.push_back({places_[i], node.sights[i].type, std::string(kAlone)});
    }
    return done(waiting.front(), std::move(alone));
  }
  round_ = Round{++rounds_, proven.value_or(waiting.front()), {}};
  const bool written =
      std::any_of(places_.begin(), places_.end(), [](const StorageUse& one) { return one.writes; });
  if (!written) return find_it(now);
  round_->marker = std::string(kMarkerPrefix) + mpi::fresh_secret().substr(0, kMarkerDigits);
  ask(round_->first, Step::leaves, kStorageLeave, now);
}

/// All others that wait look for the marker, where there is one.
void StorageProof::find_it(Time now) {
  const std::size_t first = round_->first;
  nodes_.at(first).step = Step::done;
  for (auto& [index, node] : nodes_) {
    if (index == first || node.step != Step::waits) continue;
    if (round_->marker.empty()) {
      node.step = Step::found;
    } else {
      ask(index, Step::finds, kStorageFind, now);
    }
  }
}

/// One that has proven it, and trains perhaps, is not refused for that: what the others tell is
/// compared with what it told.
void StorageProof::first_cannot(Error error, Time now) {
  const std::size_t first = round_->first;
  take_back();
  if (nodes_.at(first).proven) {
    round_->marker.clear();
    return find_it(now);
  }
  round_.reset();
  fail(first, std::move(error));
}

/// Whoever left it is gone, or cannot take it away: what it left goes by the others.
void StorageProof::take_back() {
  if (round_->marker.empty()) return;
  StorageRequest request;
  request.what = kStorageRemove;
  request.places = places_;
  request.marker = round_->marker;
  for (const auto& [index, node] : nodes_) {
    talk_.ask(index, render_storage_request(request));
    if (node.step == Step::done) talk_.ask(index, "");
  }
}

std::optional<std::string_view> StorageProof::how(const Node& first, const Node& node,
                                                  std::size_t place) const {
  if (places_[place].writes && !round_->marker.empty()) {
    if (node.seen[place]) return kByMarker;
    return std::nullopt;
  }
  return compared(first.sights[place], node.sights[place],
                  !first.machine.empty() && first.machine == node.machine);
}

std::optional<std::vector<StorageProven>> StorageProof::agreed(const Node& first,
                                                               const Node& node) const {
  std::vector<StorageProven> all;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const auto known = how(first, node, i);
    if (!known) return std::nullopt;
    all.push_back({places_[i], node.sights[i].type, std::string(*known)});
  }
  return all;
}

Error StorageProof::differs(const Node& first, const Node& node, bool first_is_wrong) const {
  std::size_t at = 0;
  while (at + 1 < places_.size() && how(first, node, at)) ++at;
  const StorageUse& use = places_[at];
  const std::string& type = node.sights[at].type;
  const std::string& other = first.sights[at].type;
  const Node& wrong = first_is_wrong ? first : node;
  const Node& right = first_is_wrong ? node : first;
  return refusal("storage-differs",
                 "the storage `{}` at `{}` is not the same on node `{}` as on `{}`", use.name,
                 use.path, wrong.name, right.name)
      .because(type != other ? fmt::format("it is {} on `{}`, and {} on `{}`", type, node.name,
                                           other, first.name)
               : use.writes  ? "what one of them leaves there the other does not see"
                             : "each of them has a folder of its own there")
      .hint(
          "mount the storage at that path on each node; a folder that each node has for itself is "
          "named by its path, without `@`");
}

void StorageProof::conclude(Time now) {
  const std::size_t first = round_->first;
  const Node leader = nodes_.at(first);
  std::vector<std::size_t> others;
  std::optional<std::vector<StorageProven>> with_first;
  for (const auto& [index, node] : nodes_) {
    if (index == first || node.step != Step::found) continue;
    others.push_back(index);
    if (!with_first) with_first = agreed(leader, node);
  }
  if (!with_first && !leader.proven && others.size() > 1) {
    fail(first, differs(leader, nodes_.at(others.front()), true));
    for (const std::size_t index : others) {
      nodes_.at(index).step = Step::waits;
      nodes_.at(index).since = now;
    }
    return round_.reset();
  }
  for (const std::size_t index : others) {
    auto proven = agreed(leader, nodes_.at(index));
    if (proven) {
      done(index, std::move(*proven));
    } else {
      fail(index, differs(leader, nodes_.at(index), false));
    }
  }
  nodes_.at(first).step = Step::done;
  if (with_first) {
    for (std::size_t i = 0; i < places_.size(); ++i) (*with_first)[i].type = leader.sights[i].type;
    done(first, std::move(*with_first));
  } else if (!leader.proven) {
    nodes_.at(first).step = Step::waits;  // alone, unless others come
    nodes_.at(first).since = now - kOthers;
  } else {
    talk_.ask(first, "");
  }
  round_.reset();
}

// --- what comes of it --------------------------------------------------------------------------

void StorageProof::done(std::size_t node, std::vector<StorageProven> proven) {
  Node& state = nodes_.at(node);
  state.step = Step::done;
  state.proven = true;
  talk_.ask(node, "");
  news_.push_back({node, std::nullopt, std::move(proven)});
}

void StorageProof::fail(std::size_t node, Error error) {
  nodes_.erase(node);
  news_.push_back({node, std::move(error), {}});
}

void StorageProof::tell() {
  for (const News& one : std::exchange(news_, {})) {
    if (one.error) {
      talk_.failed(one.node, *one.error);
    } else {
      talk_.proven(one.node, one.proven);
    }
  }
}

}  // namespace mlenv::job
