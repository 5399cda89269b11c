#include "runner/job/drive_nodes.hpp"

#include <sys/ioctl.h>
#include <algorithm>

#include "recipes/text.hpp"
#include "runner/job/interfaces.hpp"
#include "runner/job/misunderstood.hpp"
#include "runner/record/run_records.hpp"

namespace mlenv::job {
namespace {

/// Not its end alone.
bool has_bytes(int fd) {
  int count = 0;
  return ::ioctl(fd, FIONREAD, &count) != 0 || count > 0;
}

Error too_few_nodes(const Job& job, const std::string& found) {
  return failure("no-node", "the job needs {} nodes, and {}", job.nodes.least, found)
      .hint("ask for fewer (`--nodes`), or give it more");
}

Error wrong_image(const std::string& store) {
  return failure("wrong-image", "its store, `{}`, holds something else under the image's digests",
                 store)
      .hint(
          "`mlenv store verify --repair` there, or remove that folder: what it lacks comes again");
}

/// What a node says of an image that is no longer what it was when its digests were checked.
bool is_damage(const std::string& during, const Error& error) {
  return during == "image" && (error.code() == "damaged" || error.code() == "bad-gzip");
}

Error about_node(Error error, const std::string& node) {
  error.while_doing(fmt::format("node `{}` cannot take part", node));
  return error;
}

}  // namespace

DrivenNodes::DrivenNodes(Store& store, NodeStarter& starter, const DrivePlan& plan,
                         const DriveEvents& events, RankEvents ranks)
    : store_(store),
      starter_(starter),
      plan_(plan),
      events_(events),
      ranks_(std::move(ranks)),
      data_lists_(store),
      beater_(plan.link.beat),
      spread_(store,
              {plan.image_digest, plan.image_names, plan.job.nodes.most > 1, plan.pull_from,
               grants_for(plan.pull_from, plan.image_digest)},
              spread_events()),
      storage_(plan.storage, storage_talk()) {
  for (NodeOffer& offer : starter.offers()) {
    Node& node = nodes_.emplace_back();
    node.index = nodes_.size() - 1;
    node.state.offer = std::move(offer);
  }
}

SpreadEvents DrivenNodes::spread_events() {
  SpreadEvents events;
  events.came = [this](std::size_t node) {
    const SpreadCount& count = spread_.count(node);
    if (!events_.sending) return;
    events_.sending(nodes_[node].state.offer.name, count.there, count.bytes);
  };
  events.notice = events_.notice;
  events.stuck = [this](std::size_t node, const Error& why) {
    nodes_[node].error = why;
    lost(nodes_[node], why.what());
  };
  return events;
}

bool DrivenNodes::is_ready(const Node& node) const {
  const NodeState& state = node.state;
  const bool known = state.facts || plan_.image_alone;
  const bool data = state.data.size() >= plan_.data.size();
  return !node.gone && state.hello && known && state.image && state.code && data &&
         state.storage.size() == plan_.storage.size();
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
  if (!first) throw too_few_nodes(plan_.job, fmt::format("{} are ready", found));
  if (!others.empty()) first->because("nor can " + join(others, ", "));
  throw Error{*std::move(first)};
}

void DrivenNodes::require_offers() const {
  if (nodes_.size() >= plan_.job.nodes.least) return;
  throw too_few_nodes(plan_.job, fmt::format("there are {}", nodes_.size()));
}

void DrivenNodes::forgive() {
  for (Node& node : nodes_) {
    node.barred = !may_come(node);
    if (!node.barred) node.error.reset();
  }
}

bool DrivenNodes::look_for(const std::function<bool(std::size_t)>& wanted) {
  const auto now = std::chrono::steady_clock::now();
  auto there = static_cast<std::uint64_t>(
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return !node.gone; }));
  bool hope = false;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (!wanted(i) || !may_come(node) || is_ready(node)) continue;
    hope = true;
    // Its last words belong to its loss.
    if (!node.gone || node.last_words_by || !node.back_off.due(now)) continue;
    if (there >= plan_.job.nodes.most) continue;
    open(i);
    if (!nodes_[i].gone) ++there;
  }
  return hope;
}

void DrivenNodes::refuse(std::size_t node, const Error& why) {
  lost(nodes_[node], why.what());
  nodes_[node].error = why;
  nodes_[node].refused = true;
}

void DrivenNodes::give_up(std::size_t node, const std::string& why) {
  lost(nodes_[node], why);
  nodes_[node].refused = true;
  nodes_[node].given_up = true;
}

void DrivenNodes::open(std::size_t index) {
  Node& node = nodes_[index];
  node.state = {node.state.offer, {}, {}, false, false, {}, 0, {}, {}};
  node.barred = true;  // for this round, should it fail
  node.leaving = false;
  node.ports.reset();
  node.last_words_by.reset();
  node.process.reset();
  node.began = std::chrono::steady_clock::now();
  node.back_off.opened(node.began);
  node.program_sent = 0;
  node.told_sent.reset();
  node.patience = {};
  node.heard = std::chrono::system_clock::now();
  try {
    node.process = starter_.start(node.state.offer);
    node.link = std::make_unique<NodeLink>(node.process->take_stream(), plan_.link,
                                           events_of(index), &beater_);
    node.gone = false;
    node.link->meet(plan_.id, 0);
  } catch (const Error& error) {
    node.error = error;
    node.gone = true;
    node.back_off.lost(node.began);
  }
}

NodeEvents DrivenNodes::events_of(std::size_t index) {
  Node& node = nodes_[index];
  NodeEvents events;
  events.met = [this, index](const NodeHello& hello) { met(index, hello); };
  events.facts = [&node](const Facts& facts) { node.state.facts = facts; };
  events.image_ready = [this, &node](const std::string& digest) {
    node.state.image = digest == plan_.image_digest;
    if (node.state.image) return spread_.done(node.index);
    node.error = wrong_image(node.state.hello->store);
    node.error->because(fmt::format("it is {}, not {}", digest, plan_.image_digest));
    lost(node, "it has another image under this digest");
  };
  events.code_ready = [&node](const std::string&) { node.state.code = true; };
  events.data_at = [this, &node](const DataPlace& place) {
    // Each set in turn, and each once.
    const std::size_t at = node.state.data.size();
    const bool is_next = at < plan_.data.size() && plan_.data[at].name == place.name &&
                         plan_.data[at].digest == place.digest;
    if (is_next) {
      node.state.data.push_back(place);
      return;
    }
    node.error = misunderstood(fmt::format("it was not asked for the data `{}`", place.name));
    lost(node, node.error->what());
  };
  events.ports = [&node](const std::vector<std::uint16_t>& ports) { node.ports = ports; };
  spread_.listen(index, events);
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
    if (!node.error && is_damage(during, error)) {
      node.error = wrong_image(node.state.hello->store);
      node.error->because(error.what());
    }
    if (!node.error) node.error = error;
    ranks_.failed(index, during, error);
    if (!is_ready(node)) lost(node, error.what());
  };
  events.link_tested = [this, index](const std::string& answer) {
    if (on_link_tested) on_link_tested(index, answer);
  };
  events.storage_tested = [this, index](const std::string& answer) {
    storage_.heard(index, answer, std::chrono::steady_clock::now());
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
  if (hello.runtime.empty() && !plan_.image_alone) {
    nodes_[index].error = failure("no-runtime", "there is neither runc nor crun")
                              .hint("`apt-get install runc` there, or ask its operator");
    return lost(nodes_[index], "it has no OCI runtime");
  }
  NodeLink& link = *nodes_[index].link;
  if (!plan_.image_alone) link.ask_facts();
  if (plan_.image_digest.empty()) {
    state.image = true;
  } else {
    spread_.met(index, link, state.offer.name, hello, address_of(state));
  }
  storage_.met(index, state.offer.name, hello.boot_id, std::chrono::steady_clock::now());
  if (!plan_.data.empty()) link.send_data(store_, data_lists_, plan_.data);
  if (plan_.code_digest) {
    link.send_code(store_, *plan_.code_digest);
  } else {
    state.code = true;
  }
}

/// At which other nodes fetch from it; empty: which one that is is not clear.
std::string DrivenNodes::address_of(const NodeState& state) const {
  try {
    const Reach reach{state.offer.name, state.offer.address, state.offer.interface};
    return place_of(plan_.job, nodes_.size(), reach, *state.hello).address;
  } catch (const Error&) {
    return {};
  }
}

void DrivenNodes::lost(Node& node, const std::string& why) {
  spread_.lost(node.index);
  storage_.lost(node.index, std::chrono::steady_clock::now());
  if (!node.state.lost) node.state.lost = why;
  if (!node.gone) node.back_off.lost(std::chrono::steady_clock::now());
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
  beater_.turn();
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
  spread_.advance();
  storage_.tick(std::chrono::steady_clock::now(), any_unmet());
  bury();
}

/// A slow link may take minutes for the program; where that comes on nobody loses patience.
void DrivenNodes::look_at_program(Node& node) {
  constexpr std::chrono::seconds kBetweenNotices{15};
  constexpr double kMega = 1e6;
  const ProgramSent program = node.process->program_sent();
  if (program.sent == node.program_sent) return;
  const auto now = std::chrono::steady_clock::now();
  node.program_sent = program.sent;
  if (!node.told_sent) node.told_sent = now;
  node.began = now;
  if (now - *node.told_sent < kBetweenNotices || !events_.notice) return;
  node.told_sent = now;
  events_.notice(fmt::format("mlenv-node is on its way to {}: {:.1f} of {:.1f} MB",
                             node.state.offer.name, static_cast<double>(program.sent) / kMega,
                             static_cast<double>(program.all) / kMega));
}

void DrivenNodes::tick(Node& node) {
  if (node.process) (void)node.process->gone();
  if (node.gone) return;
  if (!node.state.hello) look_at_program(node);
  node.link->tick();
  const std::string notice = node.data_notice.next(*node.link, node.state.offer.name);
  if (!notice.empty() && events_.notice) events_.notice(notice);
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

std::vector<NodeState> DrivenNodes::ready_states() const {
  std::vector<NodeState> all;
  for (const std::size_t node : ready()) all.push_back(nodes_[node].state);
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
    return node.gone && (!node.process || node.given_up || node.process->gone());
  });
}

void DrivenNodes::drop(Node& node) {
  spread_.lost(node.index);
  node.gone = true;
  node.leaving = true;
  node.link.reset();
  if (node.process) node.process->let_go();
}

void DrivenNodes::drop_unmet() {
  for (Node& node : nodes_) {
    if (!node.gone && !node.state.hello) drop(node);
  }
}

void DrivenNodes::drop_all() {
  for (Node& node : nodes_) drop(node);
}

}  // namespace mlenv::job
