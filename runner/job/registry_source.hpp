#pragma once
// The registry that nodes of a job fetch its image from: which of them can, how much each is told
// to fetch at a time, when a token is renewed, and when one, or all, give it up. Beside the tokens'
// source it is plain bookkeeping; its owner tells the time.
//
// A node gives up where it has no curl, where what it got says that it never will get it, or when
// three tries, or three tokens, in a row brought it nothing. All do where the registry refuses the
// token that it just gave, or gives none.
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runner/job/messages.hpp"
#include "runner/job/registry_grants.hpp"

namespace mlenv::job {

class RegistrySource {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Owner {
    std::function<void(std::size_t node, const UseRegistry&)> use;  ///< to be told to that node
    std::function<void(const std::string&)> notice;                 ///< for the person
    bool here = true;  ///< what no node gets there comes from here
  };
  RegistrySource(PullFrom from, GrantSource grants, Owner owner);

  /// It lacks something of the image. One that comes again is a new one.
  void join(std::size_t node, const std::string& name, bool has_curl);
  void leave(std::size_t node);
  /// It fetches there, now or later.
  bool usable(std::size_t node) const;
  /// It may be told to fetch one more range.
  bool ready(std::size_t node, Time now) const;
  /// How many pieces it is told to fetch at once, where `missing` are to be fetched in all.
  std::size_t range_pieces(std::size_t missing) const;
  void began(std::size_t node, const FetchRange& range);
  /// Something of one of its ranges came.
  void piece_came(std::size_t node);
  /// It was told to fetch that one, and that has not ended.
  bool brings(std::size_t node, const std::string& digest, std::uint64_t piece) const;
  void ended(std::size_t node, const RangeEnded& range, Time now);
  /// Nobody fetches there any more. `hint`: what the person may do.
  void close(const std::string& why, const std::string& hint = {});
  /// Looks for an answer to what was asked.
  void advance(Time now);

  /// Why it does not fetch there; empty: it does, or nobody asked.
  std::string why_not(std::size_t node) const;
  bool is_closed() const { return !closed_.empty(); }  ///< for all
  bool was_tried() const { return tried_; }            ///< some node could fetch there, once
  std::string host() const { return from_.host(); }

  static constexpr std::size_t kMostRanges = 2;  ///< under way to one node
  static constexpr std::size_t kMostTries = 3;

 private:
  struct Node {
    std::string name;
    std::string why_not{};
    std::vector<FetchRange> ranges{};
    std::size_t failures = 0;  ///< since something came
    std::size_t refusals = 0;  ///< likewise: of tokens, each new
    Time not_before{};
  };
  void give_up(Node& node, const std::string& why);
  void unauthorized(Node& node, const RangeEnded& range, Time now);
  void close(const Error& error);
  void say(const std::string& text);

  PullFrom from_;
  GrantSource grants_;
  Owner owner_;
  std::map<std::size_t, Node> nodes_;
  UseRegistry grant_;  ///< serial 0: there is none yet
  bool tried_ = false;
  bool asking_ = false;
  Time granted_{};
  bool came_by_grant_ = false;  ///< something, since it was given
  bool whole_blobs_ = false;    ///< parts of one are not to be had
  std::string closed_;          ///< why nobody fetches
  std::set<std::string> said_;
};

}  // namespace mlenv::job
