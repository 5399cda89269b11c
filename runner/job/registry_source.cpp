#include "runner/job/registry_source.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace mlenv::job {
namespace {

/// curl tells times, ports and sizes: the same trouble has other ones on each node.
std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

std::string in_its_place(bool here) {
  return here ? "what it lacks comes from the other nodes, or from here"
              : "what it lacks comes from the other nodes, or not at all";
}

}  // namespace

RegistrySource::RegistrySource(PullFrom from, GrantSource grants, Owner owner)
    : from_(std::move(from)), grants_(std::move(grants)), owner_(std::move(owner)) {}

void RegistrySource::join(std::size_t node, const std::string& name, bool has_curl) {
  Node& one = nodes_[node] = Node{name};
  if (!closed_.empty()) return;
  if (!has_curl) {
    one.why_not = "there is no curl";
    return say(
        fmt::format("node `{}` has no curl, so it fetches nothing from `{}`: {}; `apt-get "
                    "install curl` there",
                    name, host(), in_its_place(owner_.here)));
  }
  tried_ = true;
  if (grant_.serial > 0) return owner_.use(node, grant_);
  if (asking_) return;
  asking_ = true;
  try {
    grants_.ask();
  } catch (const Error& error) {
    close(error);
  }
}

void RegistrySource::leave(std::size_t node) { nodes_.erase(node); }

bool RegistrySource::usable(std::size_t node) const {
  const auto found = nodes_.find(node);
  return closed_.empty() && found != nodes_.end() && found->second.why_not.empty();
}

bool RegistrySource::ready(std::size_t node, Time now) const {
  if (!usable(node) || asking_ || grant_.serial == 0) return false;
  const Node& one = nodes_.at(node);
  return one.ranges.size() < kMostRanges && now >= one.not_before;
}

std::size_t RegistrySource::range_pieces(std::size_t missing) const {
  constexpr std::size_t kFewest = 4;
  constexpr std::size_t kMost = 64;
  constexpr std::size_t kTurns = 4;  // of each node, so that a slow one does not hold up the end
  if (whole_blobs_) return missing;
  const auto count = std::count_if(nodes_.begin(), nodes_.end(),
                                   [this](const auto& one) { return usable(one.first); });
  const std::size_t turns = kTurns * static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, count));
  return std::clamp(missing / turns, kFewest, kMost);
}

void RegistrySource::began(std::size_t node, const FetchRange& range) {
  nodes_.at(node).ranges.push_back(range);
}

void RegistrySource::piece_came(std::size_t node) {
  nodes_.at(node).failures = 0;
  nodes_.at(node).refusals = 0;
  came_by_grant_ = true;
}

bool RegistrySource::brings(std::size_t node, const std::string& digest,
                            std::uint64_t piece) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return false;
  const auto& ranges = found->second.ranges;
  return std::any_of(ranges.begin(), ranges.end(), [&](const FetchRange& range) {
    return range.digest == digest && piece >= range.first && piece - range.first < range.pieces;
  });
}

void RegistrySource::ended(std::size_t node, const RangeEnded& range, Time now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Node& one = found->second;
  std::erase_if(one.ranges, [&](const FetchRange& asked) {
    return asked.digest == range.digest && asked.first == range.first;
  });
  if (range.how.empty()) {
    whole_blobs_ = whole_blobs_ || !range.gives_ranges;
  } else if (range.how == kRangeUnauthorized) {
    unauthorized(one, range, now);
  } else if (range.how == kRangeBroken && ++one.failures < kMostTries) {
    // Two that broke at once count as two tries, of one pause.
    one.not_before = now + std::chrono::seconds{1U << (one.failures - 1)};
  } else {
    give_up(one, range.why);
  }
}

/// Tokens live for minutes, and images may take longer. For others a token may be good that never
/// is for this node: where it is bound to an address, say.
void RegistrySource::unauthorized(Node& node, const RangeEnded& range, Time now) {
  constexpr std::chrono::seconds kNew{60};  // tokens that say nothing live so long
  if (asking_ || range.serial != grant_.serial || !closed_.empty()) return;
  if (!came_by_grant_ && now - granted_ < kNew)
    return close(range.why + (grant_.authorization.empty()
                                  ? ", and had asked for no login before"
                                  : " to the token that it had just given"));
  if (++node.refusals >= kMostTries)
    return give_up(node, fmt::format("{} to {} tokens in a row", range.why, kMostTries));
  asking_ = true;
  try {
    grants_.ask();
  } catch (const Error& error) {
    close(error);
  }
}

void RegistrySource::advance(Time now) {
  if (!asking_ || !closed_.empty()) return;
  try {
    const std::optional<RegistryGrant> grant = grants_.next();
    if (!grant) return;
    grant_ = {grant->blobs, grant->authorization, grant->any_certificate, grant_.serial + 1};
  } catch (const Error& error) {
    return close(error);
  }
  asking_ = false;
  granted_ = now;
  came_by_grant_ = false;
  for (const auto& [index, node] : nodes_) {
    if (node.why_not.empty()) owner_.use(index, grant_);
  }
}

void RegistrySource::give_up(Node& node, const std::string& why) {
  if (!node.why_not.empty()) return;
  node.why_not = why;
  if (!said_.insert(without_numbers(why)).second || !closed_.empty()) return;
  say(
      fmt::format("node `{}` fetches from `{}` no more: {}; {}; `curl -I {}://{}/v2/` there shows "
                  "how it is reached",
                  node.name, host(), why, in_its_place(owner_.here),
                  from_.plain_http ? "http" : "https", host()));
}

void RegistrySource::close(const Error& error) { close(error.what(), error.hint()); }

void RegistrySource::close(const std::string& why, const std::string& hint) {
  if (!closed_.empty()) return;
  closed_ = why;
  asking_ = false;
  say(fmt::format("no node fetches from `{}`: {}{}{}{}", host(), why, hint.empty() ? "" : "; ",
                  hint, owner_.here ? "; what they lack comes from here" : ""));
}

std::string RegistrySource::why_not(std::size_t node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return {};
  return closed_.empty() ? found->second.why_not : closed_;
}

void RegistrySource::say(const std::string& text) {
  if (owner_.notice) owner_.notice(text);
}

}  // namespace mlenv::job
