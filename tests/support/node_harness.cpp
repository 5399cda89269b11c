#include "tests/support/node_harness.hpp"

#include <poll.h>

#include "base/error.hpp"
#include "runner/record/run_log.hpp"

namespace mlenv::test {

TestNode::TestNode(const fs::path& store, const job::LinkSettings& settings,
                   std::vector<std::string> program) {
  Pipe to = make_pipe();
  Pipe from = make_pipe();
  Command command{Purpose{"test"}};
  command.argv = program.empty()
                     ? std::vector<std::string>{own_executable().string(), "__node", store.string()}
                     : std::move(program);
  command.stdin_fd = to.read_end.get();
  command.stdout_fd = from.write_end.get();
  child_.emplace(command);
  link_ = std::make_unique<job::NodeLink>(
      job::NodeStream{std::move(to.write_end), std::move(from.read_end)}, settings, events());
}

job::NodeEvents TestNode::events() {
  job::NodeEvents events;
  events.met = [this](const job::NodeHello& hello) { heard_.hello = hello; };
  events.sending = [this](std::uint64_t sent, std::uint64_t) { heard_.sent = sent; };
  events.image_ready = [this](const std::string& digest) { heard_.image = digest; };
  events.code_ready = [this](const std::string& digest) { heard_.code = digest; };
  events.data_at = [this](const job::DataPlace& place) { heard_.data.push_back(place); };
  events.facts = [this](const Facts& facts) { heard_.facts = facts; };
  events.ports = [this](const std::vector<std::uint16_t>& ports) { heard_.ports = ports; };
  events.started = [this](std::uint64_t rank, const std::string& id) { heard_.started[rank] = id; };
  events.line = [this](std::uint64_t rank, const std::string& text) {
    ++heard_.lines;
    const std::optional<LogLine> line = parse_log_line(text);
    if (!line) return;
    heard_.output[rank] += std::string(line->text) + (line->ends ? "\n" : "");
  };
  events.link_tested = [this](const std::string& answer) { link_tests_.push_back(answer); };
  events.ended = [this](std::uint64_t rank, const job::RankEnd& end) { heard_.ended[rank] = end; };
  events.failed = [this](const std::string& during, const Error& error) {
    heard_.failed.push_back(during + ": " + error.code() + ": " + error.what());
  };
  events.lost = [this](const std::string& why) { heard_.lost = why; };
  return events;
}

bool TestNode::until(const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  constexpr int kTick = 20;
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::array<pollfd, 2> fds{{{link_->read_fd(), POLLIN, 0},
                               {link_->wants_to_write() ? link_->write_fd() : -1, POLLOUT, 0}}};
    (void)::poll(fds.data(), fds.size(), kTick);
    if (fds[0].revents != 0) link_->take();
    if (fds[1].revents != 0) link_->send();
    link_->tick();
  }
  return true;
}

}  // namespace mlenv::test
