#include "runner/job/copy_image.hpp"

#include <poll.h>
#include <cerrno>
#include <csignal>

#include "runner/job/drive_nodes.hpp"
#include "runner/local/signal_queue.hpp"

namespace mlenv::job {
namespace {

using std::chrono::steady_clock;

DrivePlan drive_plan(const CopyPlan& copy, std::size_t nodes) {
  DrivePlan plan;
  plan.id = "copy";
  plan.image_digest = copy.digest;
  plan.image_names = copy.names;
  plan.image_alone = true;
  plan.link = copy.link;
  plan.pull_from = copy.from;
  plan.job.nodes = {1, nodes};
  plan.job.interface = copy.interface;
  return plan;
}

RankEvents no_ranks() {
  RankEvents events;
  events.started = [](std::size_t, std::uint64_t, const std::string&) {};
  events.line = [](std::size_t, std::uint64_t, const std::string&) {};
  events.ended = [](std::size_t, std::uint64_t, const RankEnd&) {};
  events.failed = [](std::size_t, const std::string&, const Error&) {};
  return events;
}

class Copy {
 public:
  Copy(Store& store, NodeStarter& starter, const CopyPlan& plan, const CopyEvents& events)
      : offers_(starter.offers()),
        events_(events),
        plan_(drive_plan(plan, offers_.size())),
        drive_events_{events.notice, events.came},
        nodes_(store, starter, plan_, drive_events_, no_ranks()) {
    for (const NodeOffer& offer : offers_) outcome_.nodes.push_back({offer.name, {}, 0, {}});
    ended_.resize(offers_.size(), false);
  }

  CopyOutcome run() {
    nodes_.require_offers();
    nodes_.forgive();
    while (outcome_.signal == 0 && nodes_.advance()) {
      wait();
      note_ready();
    }
    note_ready();
    if (outcome_.signal == 0) note_failed();
    leave();
    return std::move(outcome_);
  }

 private:
  void wait() {
    constexpr int kTick = 200;  // milliseconds
    std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}};
    nodes_.add_to(fds);
    if (::poll(fds.data(), fds.size(), kTick) < 0 && errno != EINTR) {
      throw os_error(errno, "cannot wait for the nodes");
    }
    nodes_.hear(fds.data() + 1);
    while (const int number = signals_.next()) {
      if (number == SIGUSR1 || number == SIGUSR2) continue;
      outcome_.signal = number;
      ++asked_to_end_;
    }
  }

  void end(std::size_t node, std::optional<Error> error) {
    CopiedNode& one = outcome_.nodes[node];
    ended_[node] = true;
    one.count = nodes_.image_count(node);
    one.seconds = std::chrono::duration<double>(steady_clock::now() - began_).count();
    one.error = std::move(error);
    if (events_.ended) events_.ended(one);
  }

  /// A node that has its image gives it to others until all have it.
  void note_ready() {
    for (std::size_t i = 0; i < offers_.size(); ++i) {
      if (!ended_[i] && nodes_.is_ready(i)) end(i, std::nullopt);
    }
  }

  void note_failed() {
    for (std::size_t i = 0; i < offers_.size(); ++i) {
      if (ended_[i]) continue;
      const std::optional<Error>& known = nodes_.error(i);
      end(i, known ? *known
                   : failure("no-node", "{}", nodes_.state(i).lost.value_or("it was not reached")));
    }
  }

  void leave() {
    constexpr std::chrono::seconds kLongest{10};
    nodes_.say_goodbye();
    const auto until = steady_clock::now() + kLongest;
    while (!nodes_.all_gone() && steady_clock::now() < until && asked_to_end_ < 2) wait();
    nodes_.drop_all();
  }

  std::vector<NodeOffer> offers_;
  const CopyEvents& events_;
  DrivePlan plan_;
  DriveEvents drive_events_;
  SignalQueue signals_{SignalQueue::Impatience::ends};
  DrivenNodes nodes_;
  std::vector<bool> ended_;
  CopyOutcome outcome_;
  int asked_to_end_ = 0;  ///< by so many signals
  steady_clock::time_point began_ = steady_clock::now();
};

}  // namespace

CopyOutcome copy_image(Store& store, NodeStarter& starter, const CopyPlan& plan,
                       const CopyEvents& events) {
  return Copy(store, starter, plan, events).run();
}

}  // namespace mlenv::job
