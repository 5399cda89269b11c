#include "runner/job/drive_nodes.hpp"

#include <sys/ioctl.h>
#include <algorithm>

#include "recipes/text.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

/// Not its end alone.
bool has_bytes(int fd) {
  int count = 0;
  return ::ioctl(fd, FIONREAD, &count) != 0 || count > 0;
}

Error too_few(const Job& job, const std::string& found) {
  return failure("no-node", "the job needs {} nodes, and {}", job.nodes.least, found)
      .hint("ask for fewer (`--nodes`), or give it more");
}

Error about_node(Error error, const std::string& node) {
  error.while_doing(fmt::format("node `{}` cannot take part", node));
  return error;
}

}  // namespace

DrivenNodes::DrivenNodes(Store& store, NodeStarter& starter, const DrivePlan& plan,
                         const DriveEvents& events, RankEvents ranks)
    : store_(store), starter_(starter), plan_(plan), events_(events), ranks_(std::move(ranks)) {
  for (NodeOffer& offer : starter.offers()) {
    nodes_.emplace_back().state.offer = std::move(offer);
  }
}

bool DrivenNodes::is_ready(const Node& node) const {
  const NodeState& state = node.state;
  return !node.gone && state.hello && state.facts && state.image && state.code;
}

bool DrivenNodes::advance() {
  std::uint64_t there = 0;
  std::uint64_t untried = 0;
  bool coming = false;
  bool words_due = false;
  for (const Node& node : nodes_) {
    if (!node.gone) ++there;
    if (node.gone && !node.barred) ++untried;
    if (!node.gone && !is_ready(node)) coming = true;
    if (node.last_words_by) words_due = true;
  }
  // Nothing travels to nodes that can no longer be enough.
  if (there + untried < plan_.job.nodes.least) return words_due;
  coming = coming || words_due;
  for (std::size_t i = 0; i < nodes_.size() && there < plan_.job.nodes.most; ++i) {
    if (!nodes_[i].gone || nodes_[i].barred) continue;
    open(i);
    if (nodes_[i].gone) continue;
    ++there;
    coming = true;
  }
  return coming;
}

std::vector<std::size_t> DrivenNodes::ready() const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < nodes_.size() && found.size() < plan_.job.nodes.most; ++i) {
    if (is_ready(nodes_[i])) found.push_back(i);
  }
  return found;
}

void DrivenNodes::require_enough() const {
  const std::size_t found = ready().size();
  if (found >= plan_.job.nodes.least) return;
  std::optional<Error> first;
  std::vector<std::string> others;
  for (const Node& node : nodes_) {
    if (!node.error) continue;
    if (!first) {
      first = about_node(*node.error, node.state.offer.name);
    } else {
      others.push_back(node.state.offer.name);
    }
  }
  if (!first) throw too_few(plan_.job, fmt::format("{} are ready", found));
  if (!others.empty()) first->because("nor can " + join(others, ", "));
  throw Error{*std::move(first)};
}

void DrivenNodes::require_offers() const {
  if (nodes_.size() >= plan_.job.nodes.least) return;
  throw too_few(plan_.job, fmt::format("there are {}", nodes_.size()));
}

void DrivenNodes::forgive() {
  for (Node& node : nodes_) {
    node.barred = node.state.lost && !starter_.may_come_back();
    if (!node.barred) node.error.reset();
  }
}

void DrivenNodes::open(std::size_t index) {
  Node& node = nodes_[index];
  node.state = {node.state.offer, {}, {}, false, false, {}, 0};
  node.barred = true;  // for this round, should it fail
  node.leaving = false;
  node.ports.reset();
  node.last_words_by.reset();
  node.process.reset();
  node.began = std::chrono::steady_clock::now();
  node.heard = std::chrono::system_clock::now();
  try {
    node.process = starter_.start(node.state.offer);
    node.link =
        std::make_unique<NodeLink>(node.process->take_stream(), plan_.link, events_of(index));
    node.gone = false;
    node.link->meet(plan_.id, 0);
  } catch (const Error& error) {
    node.error = error;
    node.gone = true;
  }
}

NodeEvents DrivenNodes::events_of(std::size_t index) {
  Node& node = nodes_[index];
  NodeEvents events;
  events.met = [this, index](const NodeHello& hello) { met(index, hello); };
  events.facts = [&node](const Facts& facts) { node.state.facts = facts; };
  events.image_ready = [this, &node](const std::string& digest) {
    node.state.image = digest == plan_.image_digest;
    if (node.state.image) return;
    lost(node, "it has another image under this digest");
    node.error = failure("wrong-image", "its image is {}, not {}", digest, plan_.image_digest);
  };
  events.code_ready = [&node](const std::string&) { node.state.code = true; };
  events.ports = [&node](const std::vector<std::uint16_t>& ports) { node.ports = ports; };
  events.sending = [this, &node](std::uint64_t sent, std::uint64_t all) {
    if (events_.sending) events_.sending(node.state.offer.name, sent, all);
  };
  events.started = [this, index](std::uint64_t rank, const std::string& run) {
    ranks_.started(index, rank, run);
  };
  events.line = [this, index](std::uint64_t rank, const std::string& line) {
    ranks_.line(index, rank, line);
  };
  events.use = [this, index](std::uint64_t rank, const RankUse& use) {
    if (ranks_.use) ranks_.use(index, rank, use);
  };
  events.ended = [this, index](std::uint64_t rank, const RankEnd& end) {
    ranks_.ended(index, rank, end);
  };
  events.failed = [this, index, &node](const std::string& during, const Error& error) {
    if (!node.error) node.error = error;
    ranks_.failed(index, during, error);
    if (!is_ready(node)) lost(node, error.what());
  };
  events.link_tested = [this, index](const std::string& answer) {
    if (on_link_tested) on_link_tested(index, answer);
  };
  events.lost = [this, &node](const std::string& why) { lost(node, why); };
  return events;
}

void DrivenNodes::met(std::size_t index, const NodeHello& hello) {
  NodeState& state = nodes_[index].state;
  state.hello = hello;
  if (const auto there = parse_utc(hello.clock)) {
    state.clock_offset = unix_seconds(*there) - unix_seconds(std::chrono::system_clock::now());
  }
  if (hello.runtime.empty()) {
    nodes_[index].error = failure("no-runtime", "there is neither runc nor crun")
                              .hint("`apt-get install runc` there, or ask its operator");
    return lost(nodes_[index], "it has no OCI runtime");
  }
  NodeLink& link = *nodes_[index].link;
  link.ask_facts();
  if (plan_.image_digest.empty()) {
    state.image = true;
  } else {
    link.send_image(store_, plan_.image_digest);
  }
  if (plan_.code_digest) {
    link.send_code(store_, *plan_.code_digest);
  } else {
    state.code = true;
  }
}

void DrivenNodes::lost(Node& node, const std::string& why) {
  if (!node.state.lost) node.state.lost = why;
  node.gone = true;
}

void DrivenNodes::bury() {
  constexpr std::chrono::seconds kLastWords{2};
  for (Node& node : nodes_) {
    if (!node.gone) continue;
    if (node.link) {
      node.link.reset();
      node.process->let_go();
      node.last_words_by = std::chrono::steady_clock::now() + kLastWords;
    }
    if (node.last_words_by) hear_last_words(node);
  }
}

/// Whoever carried the streams (ssh, srun) says why within moments; nobody waits for that here.
void DrivenNodes::hear_last_words(Node& node) {
  if (!node.process->gone() && std::chrono::steady_clock::now() < *node.last_words_by) return;
  node.last_words_by.reset();
  const std::string said = node.process->last_words();
  if (node.error || node.leaving) return;
  node.error = failure("no-node", "the connection to it ended: {}", node.state.lost.value_or(""));
  if (!said.empty()) node.error->because(said);
}

void DrivenNodes::ask_ports(std::size_t node, std::size_t count) {
  nodes_[node].ports.reset();
  nodes_[node].link->ask_ports(count);
}

void DrivenNodes::add_to(std::vector<pollfd>& fds) const {
  for (const Node& node : nodes_) {
    const bool there = node.link && !node.gone;
    fds.push_back({there ? node.link->read_fd() : -1, POLLIN, 0});
    fds.push_back({there && node.link->wants_to_write() ? node.link->write_fd() : -1, POLLOUT, 0});
  }
}

void DrivenNodes::hear(const pollfd* seen) {
  for (Node& node : nodes_) {
    const bool to_read = (seen++)->revents != 0;
    const bool to_write = (seen++)->revents != 0;
    if (to_read && !node.gone) {
      if (has_bytes(node.link->read_fd())) node.heard = std::chrono::system_clock::now();
      node.link->take();
    }
    if (to_write && !node.gone) node.link->send();
    tick(node);
  }
  bury();
}

void DrivenNodes::tick(Node& node) {
  if (node.process) (void)node.process->gone();
  if (node.gone) return;
  node.link->tick();
  const auto since = std::chrono::steady_clock::now() - node.began;
  if (!node.gone && !node.state.hello && since > plan_.meeting) {
    lost(node, fmt::format("it has not answered within {} s", plan_.meeting.count() / 1000));
  }
}

NodeLink* DrivenNodes::link(std::size_t node) {
  return nodes_[node].gone ? nullptr : nodes_[node].link.get();
}

std::vector<NodeState> DrivenNodes::states() const {
  std::vector<NodeState> all;
  for (const Node& node : nodes_) {
    if (node.state.hello || node.state.lost) all.push_back(node.state);
  }
  return all;
}

double DrivenNodes::last_heard(std::size_t node) const { return unix_seconds(nodes_[node].heard); }

void DrivenNodes::say_goodbye() {
  for (Node& node : nodes_) {
    if (node.gone || !node.link) continue;
    node.leaving = true;
    node.link->bye();
  }
}

bool DrivenNodes::all_gone() const {
  return std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
    return node.gone && (!node.process || node.process->gone());
  });
}

void DrivenNodes::drop_all() {
  for (Node& node : nodes_) {
    node.gone = true;
    node.leaving = true;
    node.link.reset();
    if (node.process) node.process->let_go();
  }
}

}  // namespace mlenv::job
