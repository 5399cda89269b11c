#include "runner/job/absent_nodes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "recipes/text.hpp"

namespace mlenv::job {
namespace {

/// A machine that boots again.
constexpr std::chrono::minutes kMostAbsence{5};

std::vector<NodeState> states_of(const DrivenNodes& nodes, const std::vector<std::size_t>& which) {
  std::vector<NodeState> states;
  for (const std::size_t node : which) states.push_back(nodes.state(node));
  return states;
}

}  // namespace

bool AbsentNodes::gather(std::uint64_t number) {
  const auto now = Clock::now();
  if (gathering_ != number) {
    gathering_ = number;
    since_ = now;
    enough_since_.reset();
    said_ = false;
    fitting_.clear();
    nodes_.forgive();
  }
  if (number > 0) drop_strangers();
  const bool enough = ready() >= job_.nodes.least;
  if (enough && is_elastic(job_)) {
    if (!enough_since_) enough_since_ = now;
    if (number > 0 || now - *enough_since_ >= job_.rescale_interval) return false;
  }
  if (nodes_.advance()) return true;
  if (number == 0 || enough || now - since_ >= kMostAbsence) return false;
  if (!nodes_.look_for([](std::size_t) { return true; })) return false;
  say_waiting();
  return true;
}

/// A newcomer that is not like those that ran before is let go, rather than the job ended by it.
void AbsentNodes::drop_strangers() {
  std::vector<NodeState> together;
  std::vector<std::size_t> fresh;
  for (const std::size_t node : nodes_.ready()) {
    if (takes_part(node) || fitting_.contains(node)) {
      together.push_back(nodes_.state(node));
    } else {
      fresh.push_back(node);
    }
  }
  for (const std::size_t node : fresh) {
    if (together.empty() || !fits(together, node)) continue;
    fitting_.insert(node);
    together.push_back(nodes_.state(node));
  }
}

void AbsentNodes::say_waiting() {
  if (std::exchange(said_, true) || !events_.notice) return;
  events_.notice(fmt::format("{} of {} nodes are ready; waiting up to {} minutes for others",
                             ready(), job_.nodes.least, kMostAbsence.count()));
}

void AbsentNodes::began(const std::vector<std::size_t>& with) {
  with_ = with;
  began_ = Clock::now();
}

bool AbsentNodes::takes_part(std::size_t node) const {
  return std::find(with_.begin(), with_.end(), node) != with_.end();
}

void AbsentNodes::look() {
  if (job_.roles.async) {
    // Whoever computes elsewhere knows the address of each rank: no other node can stand in.
    (void)nodes_.look_for([this](std::size_t node) { return takes_part(node); });
  } else if (may_grow(job_)) {
    (void)nodes_.look_for([](std::size_t) { return true; });
  }
}

bool AbsentNodes::may_take_in() {
  if (!may_grow(job_) || Clock::now() - began_ < job_.rescale_interval) return false;
  std::vector<std::size_t> fresh = nodes_.ready();
  std::erase_if(fresh, [this](std::size_t node) { return takes_part(node); });
  if (fresh.empty()) return false;
  std::vector<NodeState> together = states_of(nodes_, with_);
  std::vector<std::string> names;
  for (const std::size_t node : fresh) {
    if (!fits(together, node)) continue;
    together.push_back(nodes_.state(node));
    names.push_back(nodes_.state(node).offer.name);
  }
  const std::size_t most = std::min<std::size_t>(together.size(), job_.nodes.most);
  if (most <= with_.size()) return false;
  if (events_.notice) {
    events_.notice(fmt::format("{} ready: the ranks are ended, to begin again on {} nodes",
                               join(names, ", ") + (names.size() == 1 ? " is" : " are"), most));
  }
  return true;
}

bool AbsentNodes::fits(const std::vector<NodeState>& others, std::size_t node) {
  if (!events_.ready) return true;
  std::vector<NodeState> together = others;
  together.push_back(nodes_.state(node));
  try {
    events_.ready(together);
    return true;
  } catch (const Error& error) {
    if (events_.notice) {
      events_.notice(
          fmt::format("node {} is not taken in: {}", nodes_.state(node).offer.name, error.what()));
    }
    nodes_.refuse(node, error);
    return false;
  }
}

}  // namespace mlenv::job
